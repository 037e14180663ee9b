import { createLimiter, memoryStore } from '@sluice/core'
import { expect, it, vi } from 'vitest'
import { until } from '../../support/until.ts'
import type { Behaviour } from '../adapter-conformance.ts'
import { noneIsConnected } from '../ask.ts'
import type { LimitedRequest, Limits, NativeRequest, Route } from '../drivers/driver.ts'

const policy = { name: 'login', limit: 5, window: '1m' } as const
const onlyFailures: Pick<Limits, 'chargeWhen'> = { chargeWhen: (_, { status }) => status === 401 }

/** The status that a request asks for, so that a test says how a route ends. */
const asked = ({ headers }: NativeRequest): number => Number(headers['x-status'] ?? 200)

/** What is settled when the response is over: refunds, and late costs. */
export const afterTheResponse: Behaviour = ({ start }) => {
  async function counted(limits: Partial<Limits>, route: Partial<Route> = {}) {
    const store = memoryStore()
    const limiter = createLimiter({ ...policy, store })
    const app = await start({
      limits: [{ ...policy, store, key: () => 'ada', ...limits }],
      routes: [{ path: '/', answer: { status: asked }, ...route }],
    })
    const used = async (key = 'ada') =>
      policy.limit - ((await limiter.peek(key)).outcomes[0]?.remaining ?? 0)
    return {
      app,
      store,
      used,
      ask: (status: number) => app.ask('/', { headers: { 'x-status': String(status) } }),
      comesTo: (units: number) =>
        until('the units are settled', async () => (await used()) === units),
    }
  }

  it('charges a client that leaves before the answer', async () => {
    let reached = 0
    const { app, used, comesTo } = await counted(onlyFailures, {
      reached: async () => {
        reached += 1
        if (reached === 1) await until('the client has left', () => noneIsConnected(app.server))
      },
    })
    const client = new AbortController()
    const answer = app.ask('/', { signal: client.signal })
    await until('the route is reached', () => reached === 1)
    client.abort()
    await expect(answer).rejects.toThrow()
    await until('the client has left', () => noneIsConnected(app.server))

    expect(await used()).toBe(1)
    await app.ask()
    await comesTo(1)
  })

  it('adds what is known only afterwards, once for all calls', async () => {
    const { app, store, comesTo } = await counted(
      {},
      {
        reached: ({ rateLimit }: LimitedRequest) => {
          rateLimit?.charge(1)
          rateLimit?.charge(0)
          rateLimit?.charge(2)
        },
      },
    )
    const apply = vi.spyOn(store, 'apply')
    await app.ask()
    await comesTo(4)

    expect(apply.mock.calls.filter(([op]) => op === 'charge')).toHaveLength(1)
  })

  it('is settled by each limiter for itself, and added to by the last', async () => {
    const store = memoryStore()
    const quota = { limit: 10, window: '1m', store, key: () => 'ada' } as const
    const app = await start({
      limits: [
        { ...quota, name: 'first', refundWhen: (_, { status }) => status === 404 },
        { ...quota, name: 'last' },
      ],
      routes: [{ path: '/', reached: ({ rateLimit }) => rateLimit?.charge(3) }],
    })
    await app.ask()
    await app.ask('/unknown')
    const used = async (name: string) => {
      const limiter = createLimiter({ name, limit: 10, window: '1m', store })
      return 10 - ((await limiter.peek('ada')).outcomes[0]?.remaining ?? 0)
    }

    await until('the units are settled', async () => (await used('first')) === 1)
    expect(await used('last')).toBe(5)
  })
}
