import { createFetch, type Fetch, waitFor } from '@sluice/client'
import { afterAll, describe, expect, it } from 'vitest'
import { type JobApiOptions, jobApi } from './job-api.ts'

const headers = { 'X-API-Key': 'ada' }
const closers: (() => Promise<void>)[] = []

afterAll(async () => {
  for (const close of closers) await close()
})

/** Orders a report from an API of Sluice's, with its client. */
async function order(options: JobApiOptions) {
  const api = await jobApi(options)
  closers.push(api.close)
  const init = { method: 'POST', headers: { ...headers, 'Content-Type': 'application/json' } }
  const accepted = await createFetch()(`${api.url}reports`, { ...init, body: '{"page":7}' })
  expect(accepted.status).toBe(202)
  return { accepted, monitor: new URL(accepted.headers.get('Location') ?? '', api.url).href }
}

describe('a queue and its client', () => {
  it.concurrent('agree on a job that was cancelled', async () => {
    const { accepted, monitor } = await order({})
    const waiting = waitFor(accepted, { headers })
    expect((await fetch(monitor, { method: 'DELETE', headers })).status).toBe(200)
    const cancelled = await waiting
    expect(cancelled.status).toBe(200)
    expect(await cancelled.json()).toMatchObject({ status: 'cancelled' })
  })

  it.concurrent("continue if the monitor's policy refuses a poll", async () => {
    const poll = { limit: 1, window: '3s' } as const
    const { accepted, monitor } = await order({ handler: () => 'done', poll })
    expect((await fetch(monitor, { headers })).status).toBe(200)
    const statuses: number[] = []
    const watching: Fetch = async (...call) => {
      const response = await fetch(...call)
      statuses.push(response.status)
      return response
    }
    const result = await waitFor(accepted, { fetch: watching, headers })
    expect(await result.json()).toMatchObject({ status: 'done' })
    expect(statuses).toEqual([429, 200])
  })
})
