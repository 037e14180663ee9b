import { type Limiter, memoryStore } from '@sluice/core'
import { adaptive, apiKey, type GuardFields, ipKey } from '@sluice/http'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Client, clientsOf, exchange, guardOf, now } from './exchange.ts'

const quota = { limit: 1, window: '1m' } as const
const penalty = { after: 3, within: '1m', for: '5m' } as const
const address = ipKey('203.0.113.9')

function waits(limiter: Limiter, key = address): Promise<number> {
  return limiter.peek(key).then(({ retryAfterMs }) => retryAfterMs)
}

describe('the penalty of a guard', () => {
  it('blocks keys passed to limiter.block, wherever the guard is', async () => {
    const guard = guardOf({ ...quota, limit: 9, penalty: { after: 'never' } })
    await guard.limiter.block(address, '1h')
    for (const scope of ['', 'GET /x', '/api']) {
      const { verdict } = now(await guard.check(exchange({}, scope)))
      expect(verdict).toMatchObject({ action: 'reject', status: 429 })
    }
    await guard.limiter.reset(address)
    expect(now(await guard.check(exchange({}, 'GET /x'))).verdict.action).toBe('pass')
  })

  it('collects the strikes of all its places', async () => {
    const guard = guardOf({ ...quota, penalty })
    for (const scope of ['a', 'b', 'c', 'a', 'b', 'c']) await guard.check(exchange({}, scope))
    const { decision } = now(await guard.check(exchange({}, 'd')))
    expect(decision).toMatchObject({ limit: 1, remaining: 0, outcomes: [{}, { allowed: false }] })
  })

  it('is shared with its routes, which are created on first use', async () => {
    const guard = guardOf({ ...quota, limit: 100, penalty })
    const strict = { limit: 0, window: '1m' } as const
    const named = { policies: [{ ...strict, name: 'zero' }], combine: 'add' } as const
    await guard.ofRoute(strict, 'one').check(exchange({}, 'GET /one'))
    await guard.ofRoute(named, 'two').check(exchange({}, 'GET /two'))
    expect(await waits(guard.limiter)).toBe(0)
    const { decision } = now(await guard.ofRoute(named, 'two').check(exchange({}, 'GET /two')))
    const names = decision?.outcomes.map(({ policy }) => policy.name)
    expect(names).toEqual(['default', 'zero', 'penalty'])
    expect(await waits(guard.limiter)).toBeGreaterThan(0)
  })

  it('works without policies', async () => {
    const guard = guardOf({ penalty: { after: 'never' } })
    expect(now(await guard.check(exchange())).verdict).toEqual({ action: 'pass', fields: [] })
    await guard.limiter.block(address, '1h')
    expect(now(await guard.check(exchange())).verdict).toMatchObject({ action: 'reject' })
  })

  it('of one store, unnamed, is private to its guard', async () => {
    const options = { ...quota, store: memoryStore(), penalty }
    const [one, two] = [guardOf(options), guardOf(options)]
    await one.limiter.block(address, '1h')
    expect(await waits(one.limiter)).toBeGreaterThan(0)
    expect(await waits(two.limiter)).toBe(0)
  })

  describe('while a limit is reduced', () => {
    beforeEach(() => void vi.useFakeTimers({ toFake: ['Date', 'performance'] }))
    afterEach(() => void vi.useRealTimers())
    const busy = { low: 10, high: 20, signal: () => 100 }

    /** A guard of a limit that has gone down to its minimum. */
    async function reducing(options: GuardFields<object>) {
      const guard = guardOf(options)
      for (let second = 0; second < 20; second += 1) {
        vi.advanceTimersByTime(1_000)
        await guard.check(exchange())
      }
      return { guard, check: async () => now(await guard.check(exchange())) }
    }

    it('counts nothing, but still denies blocked clients', async () => {
      const limit = adaptive({ min: 1, max: 50, ...busy })
      const once = { ...penalty, after: 1 }
      const { guard, check } = await reducing({ limit, window: '1h', penalty: once })
      for (let i = 0; i < 50; i += 1) {
        const { verdict, decision } = await check()
        if (verdict.action === 'reject') expect(verdict.status).toBe(503)
        expect(decision?.outcomes[1]?.allowed).toBe(true)
      }
      expect((await check()).decision?.allowed).toBe(false)
      await guard.limiter.block(address, '1h')
      expect((await check()).verdict).toMatchObject({ status: 429 })
    })

    it('counts what another limit denies', async () => {
      const limit = adaptive({ min: 50, max: 100, ...busy })
      const login = { name: 'login', limit: 1, window: '1h' } as const
      const policies = [{ name: 'all', limit, window: '1m' } as const, login]
      const store = memoryStore()
      const apply = vi.spyOn(store, 'apply')
      const strikes = () => apply.mock.calls.filter(([op]) => op === 'charge').length
      const hourly = { ...penalty, within: '1h' } as const
      const { guard, check } = await reducing({ policies, store, penalty: hourly })
      const { decision } = await check()
      expect(decision?.outcomes.map(({ allowed }) => allowed)).toEqual([true, false, false])
      expect(await waits(guard.limiter)).toBeGreaterThan(60_000)
      // Whoever tries again while blocked costs the store no more.
      const before = strikes()
      for (let i = 0; i < 20; i += 1) await check()
      expect(before).toBeGreaterThan(0)
      expect(strikes()).toBe(before)
    })
  })

  it('of thenReset clears what counts the blocked identity alone, on routes too', async () => {
    const policies = [
      { name: 'account', limit: 1, window: '1h', key: () => 'ada' },
      { name: 'address', limit: 1, window: '1h' },
    ] as const
    const block = { after: 1, within: '1m', for: '5m', thenReset: true } as const
    const guard = guardOf({ policies, penalty: block, routes: { '/x': { policies } } })
    for (let i = 0; i < 2; i += 1) await guard.check(exchange({ path: '/x' }))

    const { outcomes } = await guard.limiter.peek(address)
    expect(outcomes[1]?.remaining).toBe(1)
    expect((await guard.limiter.peek('ada')).outcomes[0]?.remaining).toBe(0)
    const counting = { countDenied: true, limit: 1, window: '1m' } as const
    expect(() => guardOf({ ...quota, penalty: block, routes: { '/x': counting } })).toThrow(
      /^routes\['\/x'\]: policies: 'default' counts the requests that a block denies/,
    )
  })
})

describe('a client that is blocked', () => {
  const one = { limit: 1, window: '30s', algorithm: 'fixed-window' } as const
  const hour = { ...penalty, for: '1h' } as const
  const abnormal = (status: number, name: string) =>
    `{"type":"https://iana.org/assignments/http-problem-types#abnormal-usage-detected","title":"Abnormal Usage Detected","status":${status},"violated-policies":["${name}"]}`

  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }))
  afterEach(() => void vi.useRealTimers())

  it('H11: gets its own problem, from the denial that led to the block', async () => {
    const { ask, statuses } = clientsOf({ ...one, penalty: { ...hour, name: 'scan' } })
    await statuses(3)
    for (let i = 0; i < 2; i += 1) {
      const { status, fields, body } = await ask()
      expect([status, body]).toEqual([429, abnormal(429, 'scan')])
      expect(fields).toMatchObject({ 'Retry-After': '3600', 'Cache-Control': 'no-store' })
    }
  })

  it('is not shown in lists of policies, blocked or not', async () => {
    const { ask, statuses } = clientsOf({ ...one, penalty: hour, headers: ['draft-11'] })
    const before = await ask()
    await statuses(3)
    vi.advanceTimersByTime(60_000)

    const policies = { 'RateLimit-Policy': '"default";q=1;w=30' }
    expect(before.fields).toEqual({ ...policies, RateLimit: '"default";r=0;t=30' })
    // The quota has come back meanwhile; Retry-After alone tells of the block.
    expect((await ask()).fields).toMatchObject({
      ...{ ...policies, RateLimit: '"default";r=1;t=30', 'Retry-After': '3540' },
    })
  })

  it('does not see the name of a hidden penalty', async () => {
    const hidden = { ...hour, name: 'secret', hidden: true }
    const { ask, statuses } = clientsOf({ ...one, penalty: hidden })
    await statuses(4)
    vi.advanceTimersByTime(60_000)
    const { fields, body } = await ask()

    expect(fields['Retry-After']).toBe('3540')
    expect(body).toBe('{"type":"about:blank","title":"Too Many Requests","status":429}')
    expect(JSON.stringify(fields)).not.toContain('secret')
  })

  it('may have another key than the quota, and the status code of the guard', async () => {
    const key = ({ headers }: Client) => headers.user
    const house = { ...hour, key: () => 'house' }
    const { ask, statuses } = clientsOf({ ...one, key, penalty: house, statusCode: 403 })
    await statuses(4, { user: 'a' })
    expect(await ask({ user: 'b' })).toMatchObject({ status: 403, body: abnormal(403, 'penalty') })
  })

  it('is blocked by the penalty of a route, which can have another one, or none', async () => {
    const strict = { ...quota, penalty: { after: 1, within: '1m', for: '5m' } } as const
    const routes = { '/strict': strict, '/mild': { ...quota, penalty: false } } as const
    const { ask, statuses } = clientsOf({ limit: 100, window: '1m', penalty: hour, routes })
    await statuses(2, {}, { path: '/strict' })
    expect((await ask({}, { path: '/strict' })).fields['Retry-After']).toBe('300')
    await statuses(9, {}, { path: '/mild' })
    expect((await ask({}, { path: '/mild' })).body).toContain('quota-exceeded')
    expect(await statuses(1)).toEqual([200])
  })
})

describe('options of no penalty', () => {
  it.each<[string, unknown]>([
    ['penalty must be false, or options, as in { after: 10', true],
    ['penalty must be false, or options', null],
    ['penalty.key must be a resolver', { ...penalty, key: 'ip' }],
    ['penalty.key must be called, as in key: apiKey(…)', { ...penalty, key: apiKey }],
  ])('%s', (message, wrong) => {
    expect(() => guardOf({ ...quota, penalty: wrong } as never)).toThrow(message)
  })

  it('of a route name the route', () => {
    const routes = { '/x': { penalty: { ...penalty, factor: 0 } } }
    expect(() => guardOf({ ...quota, routes })).toThrow(/^routes\['\/x'\]: penalty.factor must be/)
  })
})
