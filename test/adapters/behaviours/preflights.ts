import { describe, expect, it, vi } from 'vitest'
import { scaled } from '../../support/scale.ts'
import type { App, Behaviour } from '../adapter-conformance.ts'
import type { AppSetup, Limits } from '../drivers/driver.ts'
import { sendPipelined } from '../send-raw.ts'

/** Attempts to get past a limit. */
const attempts = scaled(40, 200)
const headers = { origin: 'https://a.example', 'access-control-request-method': 'POST' }
const preflight = { method: 'OPTIONS', headers }

const fields = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'POST',
  'access-control-allow-headers': 'content-type',
  allow: 'GET',
}
/** What sets the fields of CORS, and so makes an answer look like that to a preflight. */
const orders: Readonly<Record<string, Pick<AppSetup, 'before'> & { answer?: object }>> = {
  'without CORS': {},
  'with fields of CORS that are set before the limiter': { before: fields },
  'with fields of CORS that are set behind the limiter': { answer: { fields } },
}

const clients = {
  'one address': () => '2001:db8::1',
  'a rotating /64': (index: number) => `2001:db8::${index.toString(16)}`,
} as const

/** The statuses of requests in the shape of preflights, so many at once. */
async function attack(
  app: App,
  { inFlight, address }: { inFlight: number; address: (index: number) => string },
): Promise<number[]> {
  const statuses: number[] = []
  for (let sent = 0; sent < attempts; sent += inFlight) {
    const batch = Array.from({ length: inFlight }, async (_, index) => {
      const sender = { 'x-forwarded-for': address(sent + index) }
      const question = { ...preflight, headers: { ...headers, ...sender } }
      return (await app.ask('/graphql', question)).status
    })
    statuses.push(...(await Promise.all(batch)))
  }
  return statuses
}

/** Any client can send requests in the shape of a CORS preflight, also to a handler of all methods. */
export const preflights: Behaviour = ({ start }) => {
  /** An application with a handler of all methods, which is called by `reached`. */
  function withHandler(
    { own, answer, ...setup }: AppSetup & { own?: Limits; answer?: object },
    reached: () => unknown,
  ): Promise<App> {
    const handler = { method: 'ALL', path: '/graphql', reached } as const
    const more = { ...(answer && { answer }), ...(own && { limits: own }) }
    const routes = [{ path: '/' }, { ...handler, ...more }]
    return start({ trustProxy: '127.0.0.1', ...setup, routes })
  }

  describe.each(Object.entries(orders))('%s', (_order, setup) => {
    it.each(
      Object.entries(clients).flatMap(([client, address]) =>
        [1, attempts].map((inFlight) => ({ client, inFlight, address })),
      ),
    )('count: at most the limit of $client pass, $inFlight concurrently', async (attacker) => {
      const limits = { limit: 5, window: '1m' } as const
      for (const place of [{ limits: [limits] }, { own: limits }]) {
        const reached = vi.fn()
        const app = await withHandler({ ...setup, ...place }, reached)
        const statuses = await attack(app, attacker)
        expect(statuses.filter((status) => status !== 429)).toEqual(Array(5).fill(200))
        expect(reached).toHaveBeenCalledTimes(5)
      }
    })
  })

  it('count: at most the limit pass, all on one connection', async () => {
    const reached = vi.fn()
    const app = await withHandler({ limits: [{ limit: 5, window: '1m' }] }, reached)
    const statuses = await sendPipelined(app.port, Array(attempts).fill('/graphql'), preflight)
    expect(statuses).toEqual([...Array(5).fill(200), ...Array(attempts - 5).fill(429)])
    expect(reached).toHaveBeenCalledTimes(5)
  })

  it("pass uncounted with preflights: 'pass', to whatever runs for OPTIONS", async () => {
    const reached = vi.fn()
    const limits = { limit: 1, window: '1m', preflights: 'pass' } as const
    const app = await withHandler({ own: limits }, reached)
    expect(await app.statuses(3, '/graphql', preflight)).toEqual([200, 200, 200])
    expect(reached).toHaveBeenCalledTimes(3)
    expect(await app.statuses(2, '/graphql')).toEqual([200, 429])
  })
}
