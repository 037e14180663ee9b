import { createFetch, type Fetch, waitFor } from '@sluice/client'
import { afterAll, describe, expect, it } from 'vitest'
import { type JobApiOptions, jobApi } from './job-api.ts'

const headers = { 'X-API-Key': 'ada' }
const closers: (() => Promise<void>)[] = []

afterAll(async () => {
  for (const close of closers) await close()
})

/** A `fetch` that writes down how long each call came after the last answer, and what that had told to wait, in ms. */
function watching(first: Response) {
  const polls: { status: number; pauseMs: number; toldMs: number }[] = []
  let toldMs = toldBy(first)
  let answeredMs = performance.now()
  const fetch: Fetch = async (input, init) => {
    const pauseMs = performance.now() - answeredMs
    const response = await globalThis.fetch(input, init)
    polls.push({ status: response.status, pauseMs, toldMs })
    toldMs = toldBy(response)
    answeredMs = performance.now()
    return response
  }
  return { fetch, polls }
}

function toldBy({ headers }: Response): number {
  return Number(headers.get('Retry-After')) * 1000
}

/** Orders a report from an API of Sluice's, with its client. */
async function order(options: JobApiOptions) {
  const api = await jobApi(options)
  closers.push(api.close)
  const init = { method: 'POST', headers: { ...headers, 'Content-Type': 'application/json' } }
  const accepted = await createFetch()(`${api.url}reports`, { ...init, body: '{"page":7}' })
  expect(accepted.status).toBe(202)
  const monitor = new URL(accepted.headers.get('Location') ?? '', api.url).href
  return { accepted, monitor, ...watching(accepted) }
}

describe('a queue and its client', () => {
  it.concurrent('meet: 202, polls as told, the result', async () => {
    let finish = (): void => undefined
    const { accepted, fetch, polls } = await order({
      handler: ({ payload }) =>
        new Promise((resolve) => {
          finish = () => resolve(payload)
        }),
    })
    const onPending = () => finish()
    const result = await waitFor(accepted, { fetch, headers, onPending })
    expect(await result.json()).toMatchObject({ status: 'done', result: { body: { page: 7 } } })
    expect(polls.map(({ status }) => status)).toEqual([200, 200])
    for (const { pauseMs, toldMs } of polls) {
      expect(toldMs).toBeGreaterThanOrEqual(1000)
      expect(pauseMs).toBeGreaterThanOrEqual(toldMs)
    }
  })

  it.concurrent('of a job that was cancelled: that it was', async () => {
    const { accepted, monitor } = await order({})
    const waiting = waitFor(accepted, { headers })
    expect((await fetch(monitor, { method: 'DELETE', headers })).status).toBe(200)
    const cancelled = await waiting
    expect(cancelled.status).toBe(200)
    expect(await cancelled.json()).toMatchObject({ status: 'cancelled' })
  })

  it.concurrent('go on when a poll is refused by the policy of the monitor', async () => {
    const poll = { limit: 1, window: '3s' } as const
    const { accepted, monitor, fetch, polls } = await order({ handler: () => 'done', poll })
    expect((await globalThis.fetch(monitor, { headers })).status).toBe(200)
    const result = await waitFor(accepted, { fetch, headers })
    expect(await result.json()).toMatchObject({ status: 'done' })
    expect(polls.map(({ status }) => status)).toEqual([429, 200])
    expect(polls[1]?.pauseMs).toBeGreaterThanOrEqual(polls[1]?.toldMs ?? Number.NaN)
  })
})
