import { createLimiter, memoryStore } from '@sluice/core'
import { expect, it } from 'vitest'
import { until } from '../../support/until.ts'
import type { App, Behaviour } from '../adapter-conformance.ts'
import { noneIsConnected } from '../ask.ts'
import type { Limits } from '../drivers/driver.ts'

const policy = { name: 'login', limit: 5, window: '1m' } as const

/** What is settled when the response is over: refunds, and late costs. */
export const afterTheResponse: Behaviour = ({ start }) => {
  it('charges a client that leaves before the answer', async () => {
    let reached = 0
    const store = memoryStore()
    const limiter = createLimiter({ ...policy, store })
    const used = async () => 5 - ((await limiter.peek('ada')).outcomes[0]?.remaining ?? 0)
    const chargeWhen: Limits['chargeWhen'] = (_, { status }) => status === 401
    const gone = () => until('the client has left', () => noneIsConnected(app.server))
    const app: App = await start({
      limits: [{ ...policy, store, key: () => 'ada', chargeWhen }],
      routes: [{ path: '/', reached: () => ++reached === 1 && gone() }],
    })
    const client = new AbortController()
    const answer = app.ask('/', { signal: client.signal })
    await until('the route is reached', () => reached === 1)
    client.abort()
    await expect(answer).rejects.toThrow()
    await gone()

    expect(await used()).toBe(1)
    await app.ask()
    await until('the units are settled', async () => (await used()) === 1)
  })

  it('is settled by each limiter for itself, and added to by the last', async () => {
    const store = memoryStore()
    const quota = { limit: 10, window: '1m', store, key: () => 'ada' } as const
    const app = await start({
      limits: [
        { ...quota, name: 'first', refundWhen: (_, { status }) => status === 404 },
        { ...quota, name: 'last' },
      ],
      routes: [{ path: '/', reached: ({ rateLimit }) => [1, 2].map((n) => rateLimit?.charge(n)) }],
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
