import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Fetch } from '@sluice/client'
import { mostWithin } from '../support/most-within.ts'
import type { Contender } from './contenders.ts'
import type { Arrival } from './limited-api.ts'

export type Herd = ReturnType<typeof figuresOf>

/** Lets clients call a limited API, all at once and each until it is served, and counts what arrives there. */
export async function runHerd(
  contender: Contender,
  { clients, limit }: { readonly clients: number; readonly limit: number },
) {
  const api = fork(fileURLToPath(new URL('./limited-api.ts', import.meta.url)), [String(limit)])
  try {
    const [port] = await once(api, 'message')
    const origin = `http://127.0.0.1:${port}`
    await fetch(`${origin}/arrivals`)
    const watch = watched()
    const startMs = performance.now()
    await Promise.all(
      Array.from({ length: clients }, async () => {
        const response = await contender.clientOf(watch.send)(`${origin}/items`)
        if (response.status !== 200) throw new Error(`a client was answered ${response.status}`)
        await response.text()
      }),
    )
    const tookMs = performance.now() - startMs
    const arrivals: Arrival[] = JSON.parse(await (await fetch(`${origin}/arrivals`)).text())
    return figuresOf(contender.name, { arrivals, tookMs, heardMs: watch.heardMs() })
  } finally {
    api.disconnect()
  }
}

/** A `fetch` that says when it sends, and remembers when it first heard of a refusal. */
function watched(): { send: Fetch; heardMs(): number } {
  let heardMs = Number.POSITIVE_INFINITY
  const nowMs = (): number => performance.timeOrigin + performance.now()
  const send: Fetch = async (input, init) => {
    const response = await fetch(input, { ...init, headers: { 'X-Sent-At': String(nowMs()) } })
    if (response.status === 429) heardMs = Math.min(heardMs, nowMs())
    return response
  }
  return { send, heardMs: () => heardMs }
}

function figuresOf(
  name: string,
  seen: { arrivals: readonly Arrival[]; tookMs: number; heardMs: number },
) {
  const arrivals = [...seen.arrivals].sort((a, b) => a.atMs - b.atMs)
  const firstMs = arrivals[0]?.atMs ?? 0
  const isHeard = Number.isFinite(seen.heardMs)
  const later = arrivals.filter(({ sentMs }) => !isHeard || sentMs > seen.heardMs)
  const firstRefusal = arrivals.findIndex(({ status }) => status === 429)
  return {
    name,
    requests: arrivals.length,
    refusals: arrivals.filter(({ status }) => status === 429).length,
    /** Until the last client was served. */
    tookMs: seen.tookMs,
    /** The most requests in any rolling second, of those sent after the first refusal was heard; of all where there was none. */
    busiestSecond: busiest(later),
    /** The same of those that arrived after the first refusal was sent, whenever they had been sent themselves. */
    busiestArrivals: busiest(arrivals.slice(firstRefusal + 1)),
    lateRefusals: later.filter(({ status }) => status === 429).length,
    arrivals: arrivals.map(({ atMs, status }) => {
      return { atMs: atMs - firstMs, isServed: status === 200 }
    }),
  }
}

function busiest(arrivals: readonly Arrival[]): number {
  return mostWithin(
    arrivals.map(({ atMs }) => atMs),
    1000,
  )
}
