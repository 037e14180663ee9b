import { createFetch, type Fetch, waitFor } from '@sluice/client'
import type { RequestHandler } from 'express'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { type JobApiOptions, jobApi } from './job-api.ts'

const headers = { 'X-API-Key': 'ada' }
const closers: (() => Promise<void>)[] = []

afterAll(async () => {
  for (const close of closers) await close()
})

interface Poll {
  readonly status: number
  /** How long before it was sent the answer before it had come, in ms. */
  readonly pauseMs: number
  /** What that answer had told to wait, in ms. */
  readonly toldMs: number
}

/** A `fetch` that writes down how long it was waited for, from an answer on. */
function watching(first: Response): { fetch: Fetch; polls: Poll[] } {
  const polls: Poll[] = []
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
  return { url: api.url, accepted, monitor, ...watching(accepted) }
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

  it.concurrent('of a job that failed: its problem, and no second look', async () => {
    const handler = () => {
      throw new Error('no such page')
    }
    const looks = vi.fn<RequestHandler>((_request, _response, next) => next())
    const { accepted } = await order({ handler, before: looks })
    const failed = await waitFor(accepted, { headers })
    expect(failed.status).toBe(500)
    expect(await failed.json()).toMatchObject({ status: 500, 'job-status': 'failed' })
    const statuses = looks.mock.calls.map(([, { statusCode }]) => statusCode)
    expect(statuses.filter((status) => status === 500)).toHaveLength(1)
  })

  it.concurrent('of a job that was cancelled: that it was', async () => {
    const { accepted, monitor } = await order({})
    const waiting = waitFor(accepted, { headers })
    expect((await fetch(monitor, { method: 'DELETE', headers })).status).toBe(200)
    const cancelled = await waiting
    expect([cancelled.status, await cancelled.json()]).toEqual([
      200,
      expect.objectContaining({ status: 'cancelled' }),
    ])
  })

  it.concurrent('of a job that has waited too long: 410', async () => {
    const handler = () => new Promise(() => undefined)
    const { url } = await order({ maxAge: 1000, handler })
    const late = await fetch(`${url}reports`, { method: 'POST', headers })
    const expired = await waitFor(late, { headers })
    expect(expired.status).toBe(410)
    expect(await expired.json()).toMatchObject({ 'job-status': 'expired' })
  })

  it.concurrent('of a job of somebody else: 404', async () => {
    const { accepted } = await order({ handler: () => 'done' })
    expect((await waitFor(accepted, { headers: { 'X-API-Key': 'bob' } })).status).toBe(404)
  })

  it.concurrent('go on when a poll is refused by the policy of the monitor', async () => {
    const poll = { limit: 1, window: '3s' } as const
    const { accepted, monitor, fetch, polls } = await order({ handler: () => 'done', poll })
    await new Promise((resolve) => setTimeout(resolve, 1000))
    expect((await globalThis.fetch(monitor, { headers })).status).toBe(200)
    const result = await waitFor(accepted, { fetch, headers })
    expect(await result.json()).toMatchObject({ status: 'done' })
    expect(polls.map(({ status }) => status)).toEqual([429, 200])
    expect(polls[1]?.pauseMs).toBeGreaterThanOrEqual(polls[1]?.toldMs ?? Number.NaN)
  })
})
