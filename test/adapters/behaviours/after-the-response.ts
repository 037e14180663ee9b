import { expect, it } from 'vitest'
import { until } from '../../support/until.ts'
import type { App, Behaviour } from '../adapter-conformance.ts'
import { noneIsConnected } from '../ask.ts'
import { counted } from '../counted.ts'
import type { Limits } from '../drivers/driver.ts'

/** What is settled when the response is over: refunds, and late costs. */
export const afterTheResponse: Behaviour = ({ start }) => {
  it('charges a client that disconnects before the response', async () => {
    let reached = 0
    const { options, used } = counted({ name: 'login', limit: 5, window: '1m' })
    const chargeWhen: Limits['chargeWhen'] = (_, { status }) => status === 401
    const gone = () => until('the client has left', () => noneIsConnected(app.server))
    const app: App = await start({
      limits: [{ ...options, chargeWhen }],
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

  it('is settled by each limiter separately; late costs go to the last', async () => {
    const first = counted({ name: 'first', limit: 10, window: '1m' })
    const last = counted({ name: 'last', limit: 10, window: '1m' })
    const refundWhen: Limits['refundWhen'] = (_, { status }) => status === 404
    const app = await start({
      limits: [{ ...first.options, refundWhen }, last.options],
      routes: [{ path: '/', reached: ({ rateLimit }) => [1, 2].map((n) => rateLimit?.charge(n)) }],
    })
    await app.ask()
    await app.ask('/unknown')

    await until('the units are settled', async () => (await first.used()) === 1)
    expect(await last.used()).toBe(5)
  })
}
