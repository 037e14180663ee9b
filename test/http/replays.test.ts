import { type DecisionEvent, memoryStore, type Store } from '@sluice/core'
import type { GuardFields } from '@sluice/http'
import { describe, expect, it, vi } from 'vitest'
import { fakeTime } from '../support/fake-time.ts'
import { type AnyOp, goneStore, storeThrough } from '../support/store-through.ts'
import { type Client, clientsOf, exchange, guardOf, now } from './exchange.ts'

fakeTime(['Date'], { now: 1_000_000 })

const policy = { name: 'posts', limit: 8, window: '1m' } as const
const withKey = (key: string) => ({ header: () => key })

function guarded(options: GuardFields<object> = {}) {
  const quota = options.policies ? {} : policy
  const guard = guardOf({ ...quota, key: () => 'ada', idempotencyKey: true, ...options })
  const check = async (key: string) => (await guard.check(exchange(withKey(key)))).decision
  return {
    guard,
    check,
    begin: (key: string) => now(guard.check(exchange(withKey(key)))),
    left: async (key: string) => (await check(key))?.outcomes[0]?.remaining,
  }
}

const gone: Store = goneStore(memoryStore())
const onStoreError = () => undefined

/** Requests with and without keys, by users, to a policy of five units. */
function counted(limits: Partial<GuardFields<Client>> = {}) {
  const five = { name: 'posts', limit: 5, window: '1m', algorithm: 'fixed-window' } as const
  const key = ({ headers }: Client) => headers.user ?? 'ada'
  const options = { ...five, key, idempotencyKey: true, ...limits }
  const { guard, ask } = clientsOf(options as GuardFields<Client>)
  return {
    post: (idempotencyKey?: string, more: object = {}, view: object = {}) =>
      ask(
        { ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }), ...more },
        { method: 'POST', path: '/jobs', ...view },
      ),
    used: async (user = 'ada') =>
      5 - ((await guard.limiter.peek(user)).outcomes[0]?.remaining ?? 0),
  }
}

describe('a retry', () => {
  it('I04: is charged nothing, and shows the limits of this request', async () => {
    const { post, used } = counted({ headers: ['draft-11'] })
    expect((await post('"k"')).fields.RateLimit).toBe('"posts";r=4;t=60')
    await post()
    const { status, fields } = await post('"k"')
    expect(status).toBe(200)
    expect(fields.RateLimit).toBe('"posts";r=3;t=60')
    expect(await used()).toBe(2)
  })

  it('passes when nothing is left, as often as retries are allowed', async () => {
    const { post, used } = counted()
    const statuses = []
    for (let i = 0; i < 12; i += 1) statuses.push((await post('k')).status)
    expect(statuses).toEqual([...Array(8).fill(200), ...Array(4).fill(429)])
    expect((await post()).status).toBe(429)
    expect(await used()).toBe(5)
  })

  it('I05: of a refused request does not count as one, nor one after the window', async () => {
    const { post, used } = counted()
    for (let i = 0; i < 5; i += 1) await post()
    expect((await post('k')).status).toBe(429)
    for (let window = 0; window < 2; window += 1) {
      vi.setSystemTime(Date.now() + 60_000)
      expect((await post('k')).decision?.remaining).toBe(4)
      expect(await used()).toBe(1)
    }
  })

  it.each([
    ['without its quotes', '"a-b"', 'a-b'],
    ['with escapes', '"a\\"b\\\\"', 'a"b\\'],
    ['with space around it', '"k"', '  "k" '],
  ])('I07: is known by a key %s', async (_, one, other) => {
    const { post, used } = counted()
    await post(one)
    await post(other)
    expect(await used()).toBe(1)
  })

  it.each([
    ['another key', 'k2', {}, {}],
    ['another path', 'k', {}, { path: '/other' }],
    ['another method', 'k', {}, { method: 'PUT' }],
    ['no key', undefined, {}, {}],
    ['a blank key', '   ', {}, {}],
    ['another user', 'k', { user: 'bob' }, {}],
  ])('is not a request with %s', async (_, key, headers, view) => {
    const { post, used } = counted()
    await post('k')
    await post(key, headers, view)
    expect((await used()) + (await used('bob'))).toBe(2)
  })

  it('of a request whose charge was given back is charged', async () => {
    const { post, used } = counted({ refundWhen: (_, { status }) => status >= 500 })
    const { hold } = await post('k')
    hold?.finish(503)
    expect(await used()).toBe(0)
    await post('k')
    await post('k')

    expect(await used()).toBe(1)
  })

  it('is found by any resolver', async () => {
    const idempotencyKey = async ({ headers }: Client) => headers.request
    const { post, used } = counted({ idempotencyKey })
    for (let i = 0; i < 3; i += 1) await post(undefined, { request: 'r1' })
    expect(await used()).toBe(1)
  })

  it('is in flight like any other request', async () => {
    const inFlight = { name: 'inflight', algorithm: 'concurrency', limit: 1 } as const
    const policies = [{ ...policy, algorithm: 'fixed-window' } as const, inFlight]
    const { check } = guarded({ policies })
    expect((await check('k'))?.outcomes.map(({ remaining }) => remaining)).toEqual([7, 0])
    expect((await check('k'))?.allowed).toBe(false)
  })

  it('is reported to observers like any other request, and nothing else is', async () => {
    const onDecision = vi.fn<(event: DecisionEvent) => void>()
    const { post } = counted({ observers: { onDecision } })
    await post('k')
    await post('k')

    const posts = { policy: { name: 'posts' } }
    const told = (cost: number) => [
      { decision: { outcomes: [posts] }, checks: [{ ...posts, cost }] },
    ]
    expect(onDecision.mock.calls).toMatchObject([told(1), told(0)])
  })

  it('is known to each limiter by itself', async () => {
    const store = memoryStore()
    for (const name of ['one', 'two', 'one', 'two']) {
      expect(await guarded({ name, store }).left('k')).toBe(7)
    }
  })
})

describe('a guard with an idempotency key', () => {
  it('calls the store once for a request without a key', () => {
    const store = memoryStore()
    const apply = vi.spyOn(store, 'apply')
    const { guard } = guarded({ store })
    now(guard.check(exchange()))
    expect(apply).toHaveBeenCalledTimes(1)
  })

  it('delays a request once for a store that does not answer', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    let isFrozen = false
    const never = new Promise<never>(() => undefined)
    const before = vi.fn(async (_op: AnyOp) => (isFrozen ? never : undefined))
    const options = { store: storeThrough(memoryStore(), before), observers: { onStoreError } }
    const { guard, left } = guarded(options)
    await left('a')
    isFrozen = true
    before.mockClear()
    const asked = exchange(withKey('b'))
    const passage = guard.check(asked)
    await vi.advanceTimersByTimeAsync(100)
    expect((await passage).decision?.source).toBe('fallback')
    // Nor does it at the next guard of the chain. What nobody waits for is told to the store as ever.
    const next = guardOf({ ...policy, ...options, name: 'next', key: () => 'ada' })
    expect(now(next.check(asked)).decision?.source).toBe('fallback')
    expect(before.mock.calls.filter(([op]) => op === 'consume')).toHaveLength(1)
  })

  it('charges the first attempt even if a process decides by its share alone', async () => {
    const { left } = guarded({ store: gone, instances: 4, observers: { onStoreError } })
    expect([await left('a'), await left('b')]).toEqual([1, 0])
  })

  it.each(['open', 'closed'] as const)(
    "follows failureMode '%s', and tells its observer",
    async (failureMode) => {
      const onDecision = vi.fn()
      const observers = { onDecision, onStoreError }
      const { check } = guarded({ store: gone, failureMode, observers })
      for (let i = 0; i < 2; i += 1) expect((await check('k'))?.source).toBe(failureMode)
      expect(onDecision).toHaveBeenCalledTimes(2)
    },
  )

  it('takes the longest window of its policies, and nothing of those in shadow', async () => {
    const policies = [
      { name: 'burst', limit: 5, window: '1s' },
      { name: 'day', limit: 5, window: '1d' },
    ] as const
    const onShadow = vi.fn()
    const shadow = { name: 'new', limit: 5, window: '1m', mode: 'shadow' } as const
    const { check } = guarded({ policies: [...policies, shadow], observers: { onShadow } })
    await check('k')
    vi.setSystemTime(Date.now() + 3_600_000)
    const retry = await check('k')

    expect(retry?.outcomes.map(({ remaining }) => remaining)).toEqual([5, 4])
    const seen = onShadow.mock.calls.map(([{ outcomes }]) => outcomes[0].remaining)
    expect(seen).toEqual([4, 5])
  })

  it('treats a request with another cost as a different request', () => {
    const costs = new Map<object, number>()
    const cost = (native: object) => costs.get(native) ?? 1
    const { guard } = guarded({ cost })
    const send = (units: number) => {
      const asked = exchange(withKey('k'))
      costs.set(asked.native, units)
      return now(guard.check(asked)).verdict.action
    }

    expect([send(1), send(8), send(7), send(7)]).toEqual(['pass', 'reject', 'pass', 'pass'])
  })

  it("keeps the first attempt's units for the retries that rely on it", () => {
    const chargeWhen = (_: object, { status }: { status: number }) => status === 401
    const { begin } = guarded({ name: 'logins', limit: 2, chargeWhen })
    let tried = 0
    for (let round = 0; round < 10; round += 1) {
      const own = begin(`k${round}`)
      for (let retry = 0; retry < 3; retry += 1) {
        const guess = begin(`k${round}`)
        if (guess.verdict.action === 'pass') tried += 1
        guess.hold?.finish(401)
      }
      own.hold?.finish(200)
    }

    expect(tried).toBe(6)
  })

  it('charges a retry whose first attempt is refunded meanwhile', async () => {
    const store = storeThrough(memoryStore(), () => Promise.resolve())
    const refundWhen = (_: object, { status }: { status: number }) => status >= 500
    const { guard } = guarded({ store, refundWhen })
    for (let lead = 0; lead < 12; lead += 1) {
      const key = withKey(`k${lead}`)
      const first = await guard.check(exchange(key))
      await new Promise(setImmediate)
      const retry = guard.check(exchange(key))
      for (let tick = 0; tick < lead; tick += 1) await undefined
      first.hold?.finish(500)
      ;(await retry).hold?.finish(200)
      await new Promise(setImmediate)
      expect((await guard.limiter.peek('ada')).outcomes[0]?.remaining).toBe(7)
      await guard.limiter.reset('ada')
    }
  })

  it('queues retries like other requests', () => {
    const queue = { algorithm: 'leaky-bucket', limit: 1, window: '1s', queue: 10 } as const
    const { begin } = guarded({ policies: [queue] })
    const delayOf = (key: string) => {
      const { decision, hold } = begin(key)
      hold?.abort()
      return decision?.delayMs
    }
    const delays = [delayOf('a'), delayOf('b'), delayOf('b'), delayOf('b')]

    expect(delays).toEqual([0, 1000, 2000, 3000])
  })
})
