import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, it, onTestFinished, vi } from 'vitest'
import { until } from '../../support/until.ts'
import type { Behaviour } from '../adapter-conformance.ts'
import { noneIsConnected } from '../ask.ts'
import { counted, inFlight } from '../counted.ts'
import type { Limits, Route } from '../drivers/driver.ts'

/** Requests in flight, each of which holds a lease. */
export const leases: Behaviour = ({ driver, start }) => {
  /** An application that limits what is in flight; a route that stays open until `end` is called, and how many hold leases. */
  async function holding(
    route: Partial<Route> = {},
    limits: (leases: Limits) => readonly Limits[] = (leases) => [leases],
  ) {
    const { options, used } = counted(inFlight)
    const ends: (() => void)[] = []
    const reached = vi.fn(() => new Promise<void>((resolve) => void ends.push(resolve)))
    const app = await start({ limits: limits(options), routes: [{ path: '/', reached, ...route }] })
    return {
      app,
      reached,
      used,
      end: () => {
        for (const end of ends.splice(0)) end()
      },
      free: () => until('the leases are settled', async () => (await used()) === 0),
    }
  }

  it.each<[string, Partial<Route>, string]>([
    ['304', { answer: { status: 304 } }, 'GET'],
    ['a redirect', { answer: { status: 302, fields: { location: '/a' } } }, 'GET'],
    ['HEAD', {}, 'HEAD'],
    ['a response past the framework', { streams: true }, 'GET'],
  ])('is over after %s', async (_, route, method) => {
    const { app, free } = await holding({ ...route, reached: () => undefined })
    for (let i = 0; i < 2; i += 1) {
      await app.ask('/', { method })
      await free()
    }
  })

  it('lasts until a stream ends or its client disconnects', async () => {
    const { app, reached, used, free } = await holding({ streams: true })
    const client = new AbortController()
    const answer = app.ask('/', { signal: client.signal })
    answer.catch(() => undefined)
    await until('the route is reached', () => reached.mock.calls.length === 1)

    expect(await used()).toBe(1)
    client.abort()
    await free()
    await expect(answer).rejects.toThrow()
  })

  it('is not leaked by a client that disconnects before the decision', async () => {
    const asked = vi.fn<() => void>()
    const client = new AbortController()
    let leave = (): void => undefined
    const gone = new Promise<void>((resolve) => (leave = resolve))
    const key = async () => {
      asked()
      await gone
      return 'ada'
    }
    const onDecision = vi.fn()
    const { app, free } = await holding({ reached: () => undefined }, (leases) => [
      { ...leases, key, observers: { onDecision } },
    ])
    const answer = app.ask('/', { signal: client.signal })
    await until('the key is asked for', () => asked.mock.calls.length === 1)
    client.abort()
    await expect(answer).rejects.toThrow()
    await until('the client has left', () => noneIsConnected(app.server))
    leave()

    await until('it is decided', () => onDecision.mock.calls.length === 1)
    await free()
  })

  const pipelined = it.skipIf(driver.missesPipelined)
  pipelined('is not left behind by pipelined requests whose connection is lost', async () => {
    const { app, reached, used, free } = await holding()
    const socket = connect(app.port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    await once(socket, 'connect')
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(2))
    await until('the route is reached', () => reached.mock.calls.length === 2)

    expect(await used()).toBe(2)
    socket.destroy()
    await free()
  })

  it('ends when a later limiter refuses', async () => {
    const { app, reached, free } = await holding({}, (leases) => [
      leases,
      { limit: 0, window: '1m' },
    ])

    for (let i = 0; i < 3; i += 1) {
      expect((await app.ask()).status).toBe(429)
      await free()
    }
    expect(reached).not.toHaveBeenCalled()
  })

  it('ends when the client disconnects while a later limiter delays the request', async () => {
    const queue = { algorithm: 'leaky-bucket', limit: 1, window: '10s' } as const
    const { app, reached, used, free, end } = await holding({}, (leases) => [leases, queue])
    const first = app.ask()
    await until('the route is reached', () => reached.mock.calls.length === 1)
    const client = new AbortController()
    const answer = app.ask('/', { signal: client.signal })
    await until('the leases are settled', async () => (await used()) === 2)
    client.abort()
    await expect(answer).rejects.toThrow()

    await until('the leases are settled', async () => (await used()) === 1)
    end()
    await first
    await free()
    expect(reached).toHaveBeenCalledTimes(1)
  })
}
