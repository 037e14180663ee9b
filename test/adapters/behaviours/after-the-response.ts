import { createLimiter, memoryStore } from '@sluice/core'
import { expect, it, onTestFinished, vi } from 'vitest'
import { until } from '../../support/until.ts'
import type { Behaviour } from '../adapter-conformance.ts'
import { noneIsConnected } from '../ask.ts'
import type { LimitedRequest, Limits, NativeRequest, Route } from '../drivers/driver.ts'

const policy = { name: 'login', limit: 5, window: '1m' } as const
const onlyFailures: Pick<Limits, 'chargeWhen'> = { chargeWhen: (_, { status }) => status === 401 }
const notOurFaults: Pick<Limits, 'refundWhen'> = { refundWhen: (_, { status }) => status >= 500 }

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

  it('counts only failed logins, and refuses the one after the last that is allowed', async () => {
    const { ask, comesTo } = await counted(onlyFailures)
    for (let i = 0; i < 20; i += 1) {
      expect((await ask(200)).status).toBe(200)
      await comesTo(0)
    }
    for (let i = 1; i <= 5; i += 1) {
      expect((await ask(401)).status).toBe(401)
      await comesTo(i)
    }

    expect((await ask(200)).status).toBe(429)
  })

  it('lets at most the limit of a hundred parallel wrong logins reach the handler', async () => {
    let tried = 0
    let refused = 0
    const { app, comesTo } = await counted(onlyFailures, {
      answer: { status: 401 },
      reached: async () => {
        tried += 1
        await until('all others are refused', () => refused === 95)
      },
    })
    const login = async () => {
      const answer = await app.ask()
      if (answer.status === 429) refused += 1
      return answer
    }
    const answers = await Promise.all(Array.from({ length: 100 }, login))

    expect(tried).toBe(5)
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(5)
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(95)
    await comesTo(5)
  })

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

  it('asks an async function, of the request too', async () => {
    const chargeWhen = vi.fn<Limits['chargeWhen'] & object>(
      async ({ headers }, { status }) => status === 401 && headers['x-internal'] === undefined,
    )
    const { app, comesTo, used } = await counted({ chargeWhen }, { answer: { status: 401 } })
    await app.ask('/', { headers: { 'x-internal': 'yes' } })
    await comesTo(0)
    await app.ask()
    await until('it is asked', () => chargeWhen.mock.calls.length === 2)
    await chargeWhen.mock.results[1]?.value

    expect(await used()).toBe(1)
  })

  it.each<[string, Limits['refundWhen'] & object]>([
    ['throws', () => raise('secret')],
    ['rejects', async () => raise('secret')],
    ['answers neither true nor false', () => 'yes' as never],
  ])('keeps the charge when the function %s, and reports it', async (_, refundWhen) => {
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    onTestFinished(() => void process.off('unhandledRejection', unhandled))
    const onInvalid = vi.fn()
    const { ask, used } = await counted({ refundWhen, observers: { onInvalid } })
    expect((await ask(500)).status).toBe(500)
    await until('it is reported', () => onInvalid.mock.calls.length === 1)

    expect(onInvalid.mock.calls[0]?.[0]).toEqual({
      code: 'SLUICE_ANSWER_INVALID',
      message: expect.stringMatching(
        /^refundWhen: it must answer true or false, but .*; the charge was kept$/,
      ),
    })
    expect(JSON.stringify(onInvalid.mock.calls)).not.toContain('secret')
    expect(await used()).toBe(1)
    expect(unhandled).not.toHaveBeenCalled()
  })

  it('gives back of several policies only what those took that it concerns', async () => {
    const store = memoryStore()
    const app = await start({
      limits: [
        {
          store,
          key: () => 'ada',
          policies: [
            { name: 'failed', limit: 10, window: '1m', ...onlyFailures },
            { name: 'healthy', limit: 10, window: '1m', ...notOurFaults },
            { name: 'all', limit: 10, window: '1m' },
          ],
        },
      ],
      routes: [{ path: '/', answer: { status: asked } }],
    })
    for (const status of [200, 401, 500, 500]) {
      await app.ask('/', { headers: { 'x-status': String(status) } })
    }
    const remaining = async () => {
      const limiters = ['failed', 'healthy', 'all'].map((name) =>
        createLimiter({ name, limit: 10, window: '1m', store }),
      )
      const peeked = await Promise.all(limiters.map((limiter) => limiter.peek('ada')))
      return peeked.map(({ outcomes }) => outcomes[0]?.remaining)
    }

    await until('the units are settled', async () => (await remaining()).join() === '9,8,6')
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

  it('charges what was added also when the client leaves', async () => {
    let reached = 0
    const { app, comesTo } = await counted(
      {},
      {
        reached: ({ rateLimit }) => {
          rateLimit?.charge(3)
          reached += 1
          return until('the client has left', () => noneIsConnected(app.server))
        },
      },
    )
    const client = new AbortController()
    const answer = app.ask('/', { signal: client.signal })
    await until('the route is reached', () => reached === 1)
    client.abort()
    await expect(answer).rejects.toThrow()

    await comesTo(4)
  })

  it('charges at once what is added after the response', async () => {
    let decision: LimitedRequest['rateLimit']
    const chargeWhen = vi.fn(() => true)
    const { app, used } = await counted(
      { chargeWhen },
      {
        reached: ({ rateLimit }) => {
          decision = rateLimit
        },
      },
    )
    await app.ask()
    await until('the response is over', () => chargeWhen.mock.calls.length === 1)
    decision?.charge(2)

    expect(await used()).toBe(3)
    decision?.charge(1)
    expect(await used()).toBe(4)
  })

  it('charges one policy alone where it is named', async () => {
    const store = memoryStore()
    const app = await start({
      limits: [
        {
          store,
          key: () => 'ada',
          policies: [
            { name: 'requests', limit: 10, window: '1m' },
            { name: 'bytes', limit: 1_000, window: '1m', cost: 0, unit: 'content-bytes' },
          ],
        },
      ],
      routes: [{ path: '/', reached: ({ rateLimit }) => rateLimit?.charge(900, 'bytes') }],
    })
    await app.ask()
    const limiter = createLimiter({ name: 'bytes', limit: 1_000, window: '1m', store })
    await until(
      'the units are settled',
      async () => (await limiter.peek('ada')).outcomes[0]?.remaining === 100,
    )

    const answer = await app.ask()
    expect(answer.field('ratelimit')).toBe('"requests";r=8;t=60, "bytes";r=100;t=60')
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

  it.each([
    [-1, undefined, /charge\(\) must be a whole number from 0 .*, but is -1/],
    [1.5, undefined, /but is 1\.5/],
    [Number.NaN, undefined, /but is NaN/],
    [1, 'other', /charge\(\) names 'other', but this limiter has no such policy; it has login/],
  ])('throws to whoever charges %s of policy %s', async (units, name, message) => {
    const { app, used } = await counted(
      {},
      { reached: ({ rateLimit }) => rateLimit?.charge(units, name) },
    )

    const answer = await app.ask()
    expect(answer.status).toBe(500)
    expect(answer.body).toMatch(message)
    expect(await used()).toBe(1)
  })

  it('charges a request that was refused too, where its reply says so', async () => {
    const { app, comesTo } = await counted({
      cost: 6,
      reply: (decision) => {
        if ('charge' in decision && typeof decision.charge === 'function') decision.charge(2)
        return 'no'
      },
    })
    expect((await app.ask()).status).toBe(418)

    await comesTo(2)
  })
}

function raise(message: string): never {
  throw new Error(message)
}
