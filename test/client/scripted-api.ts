import { vi } from 'vitest'
import { fakeTime as fake } from '../support/fake-time.ts'

/** An answer of the scripted API: a status with headers and a body, or an error to reject with. */
export type Script = ScriptedAnswer | Error

export interface ScriptedAnswer {
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly body?: string
}

/** A refusal that says when to come back. */
export function refusal(seconds: number, more: Readonly<Record<string, string>> = {}) {
  return { status: 429, headers: { 'Retry-After': `${seconds}`, ...more } }
}

/** A `fetch` that gives the answers of a script in turn, the last one for ever, and writes down what was sent when. */
export function scriptedApi(...script: Script[]) {
  const startMs = performance.now()
  /** Times are in ms on the faked clock, from 0. */
  const sent: { atMs: number; url: string; method: string; body: string }[] = []
  let asked = 0
  const answer: typeof fetch = async (input, init) => {
    const request = new Request(input instanceof Request ? input : String(input), init)
    request.signal.throwIfAborted()
    const scripted = script[Math.min(asked, script.length - 1)] ?? {}
    asked += 1
    const atMs = performance.now() - startMs
    sent.push({ atMs, url: request.url, method: request.method, body: await request.text() })
    if (scripted instanceof Error) throw scripted
    const { status = 200, headers = {}, body = '' } = scripted
    const hasBody = ![204, 304].includes(status)
    const length = { 'Content-Length': String(body.length) }
    return new Response(hasBody ? body : null, { status, headers: { ...length, ...headers } })
  }
  return { fetch: answer, sent, times: () => sent.map(({ atMs }) => atMs) }
}

/** Fakes every clock that the client reads, and `Math.random` if it is given. */
export function fakeTime({ random }: { readonly random?: number } = {}): void {
  const now = Date.UTC(2026, 10, 21, 12)
  const toFake = ['setTimeout', 'clearTimeout', 'performance', 'Date'] as const
  fake([...toFake], { now, ...(random !== undefined && { random }) })
}

/** Runs all timers until a promise has settled. */
export async function settled<T>(promise: Promise<T>): Promise<T> {
  let done = false
  const mark = (): void => {
    done = true
  }
  promise.then(mark, mark)
  for (let round = 0; round < 10_000 && !done; round++) {
    await vi.advanceTimersToNextTimerAsync()
  }
  return promise
}

/** A body that says nothing, for ever. */
export function silence(): ReadableStream<Uint8Array> {
  return new ReadableStream({ pull: () => new Promise(() => undefined) })
}

export const url = 'https://api.example.com/items'
