import { type AdaptiveOptions, adaptive, type GuardFields } from '@sluice/http'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Client, clientsOf } from '../exchange.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }))
afterEach(() => void vi.useRealTimers())

const busy = { low: 10, high: 20, signal: () => 100 }

/** Lets a request that costs nothing come in each second. */
async function each(seconds: number, { ask }: ReturnType<typeof clientsOf>): Promise<void> {
  for (let second = 0; second < seconds; second += 1) {
    vi.setSystemTime(Date.now() + 1_000)
    await ask({ cost: '0' })
  }
}

/** Asks a guard whose limit has gone down to 250, and of which 250 units were taken 3510 seconds ago. */
async function reduced(limits: Partial<GuardFields<Client>> = {}) {
  const options: AdaptiveOptions = { ...busy, min: 250, max: 1_000 }
  const cost = ({ headers }: Client) => Number(headers.cost ?? 1)
  const hourly = { name: 'hourly', window: '1h', algorithm: 'fixed-window' } as const
  const policies = [{ ...hourly, limit: adaptive(options), cost }]
  const guard = clientsOf({ policies, headers: ['draft-11'], ...limits } as GuardFields<Client>)
  await guard.ask({ cost: '250' })
  await each(30, guard)
  vi.setSystemTime(Date.now() + 3_480_000)
  return guard.ask()
}

describe('a limit that denies while it is lower than in quiet times', () => {
  it('H10: says that capacity is reduced', async () => {
    const { status, fields, body } = await reduced()

    expect(status).toBe(503)
    expect(fields).toEqual({
      ...{ 'RateLimit-Policy': '"hourly";q=250;w=3600', RateLimit: '"hourly";r=0;t=90' },
      ...{ 'Retry-After': '90', 'Cache-Control': 'no-store' },
    })
    expect(body).toBe(
      '{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"Temporary Reduced Capacity","status":503,"violated-policies":["hourly"]}',
    )
  })

  it('reports an exceeded quota if a limit that is not reduced denies too', async () => {
    const limit = adaptive({ ...busy, min: 1, max: 2 })
    const moving = { name: 'moving', limit, window: '1h' } as const
    const guard = clientsOf({ policies: [moving, { name: 'fixed', limit: 1, window: '1h' }] })
    await guard.ask()
    await each(10, guard)
    const { status, body } = await guard.ask()

    expect(status).toBe(429)
    expect(JSON.parse(body)).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      ...{ title: 'Quota Exceeded', status: 429, 'violated-policies': ['moving', 'fixed'] },
    })
  })

  it('does not use the status and text for quotas, but calls a message function', async () => {
    const fixed = await reduced({ message: 'You asked too often', statusCode: 420 })
    expect(fixed.status).toBe(503)
    expect(JSON.parse(fixed.body).title).toBe('Temporary Reduced Capacity')
    const found = await reduced({ message: (_, { retryAfterMs }) => `wait ${retryAfterMs}` })
    expect([found.status, found.body]).toEqual([503, 'wait 90000'])
  })

  it('reveals nothing if it is hidden', async () => {
    const limit = adaptive({ ...busy, min: 0, max: 1, smoothing: 1 })
    const guard = clientsOf({ name: 'secret', limit, window: '1h', hidden: true })
    await guard.ask()
    await each(1, guard)
    const { status, fields, body } = await guard.ask()

    expect(status).toBe(503)
    expect(body).toBe('{"type":"about:blank","title":"Service Unavailable","status":503}')
    expect(JSON.stringify(fields)).not.toContain('secret')
  })
})
