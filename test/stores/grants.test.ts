import { type Check, definePolicy, type PolicyOptions, type Store } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import { describe, expect } from 'vitest'
import { it } from '../support/redis-test.ts'

let opened = 0
let store: Store
let now = 0
let unreadable: string[]

it.beforeEach(({ client }) => {
  opened += 1
  now = 1_795_195_800_000
  unreadable = []
  store = redisStore(client, {
    ...{ prefix: `grants${opened}`, clock: () => now, denialTtlMs: 0, heartbeatMs: 0 },
    batch: { maxInFlight: 1 },
    observers: { onInvalid: ({ message }) => void unreadable.push(message) },
  })
})

const key = 'k'
const small = { name: 'hot', limit: 100, window: '2s' } as const

function policyOf(options: PolicyOptions) {
  return definePolicy(options, '')
}

const holding = policyOf({ ...small, prefetch: '200ms' })

/** Returns the units of a grant that nobody closes. */
async function grant(policy: typeof holding, units: number, limit = policy.limit) {
  const terms = { id: 2 ** 52, lifeMs: policy.prefetchMs, divisor: 1, closed: [] }
  const [granted] = (await store.grant?.([{ policy, key, cost: units, limit, terms }])) ?? []
  return granted?.units
}

const reset = (check: Check) => store.change({ op: 'reset', checks: [check] })

/** Takes units one by one; returns how many were admitted. */
async function take(policy: typeof holding, units: number, limit = policy.limit) {
  let admitted = 0
  for (let i = 0; i < units; i += 1) {
    const [outcome] = await store.apply('consume', [{ policy, key, cost: 1, limit }])
    if (outcome?.allowed) admitted += 1
  }
  return admitted
}

describe('a grant that lapses', () => {
  it.each([
    { resolution: 1, limit: 100 },
    { resolution: 70, limit: 100 },
    { resolution: 1, limit: 300 },
  ])('moves no unit that a process without prefetch took later: %j', async (options) => {
    const ofPolicy = { ...small, ...options }
    const [other, own] = [policyOf(ofPolicy), policyOf({ ...ofPolicy, prefetch: '200ms' })]
    expect(await grant(own, 5)).toBe(5)
    now += 1_900
    expect(await take(other, options.limit)).toBe(options.limit)
    expect(await take(own, 1)).toBe(0)
    now += 400
    expect(await take(other, 5)).toBe(0)
    expect(await take(own, 5)).toBe(0)
    now += 1_600 + options.resolution
    expect(await take(own, options.limit + 1)).toBe(options.limit)
  })

  it('counts in full where the limit has become small', async () => {
    const large = policyOf({ name: 'large', limit: 10_000, window: '10s', prefetch: '500ms' })
    await store.apply('consume', [{ policy: large, key, cost: 300, limit: 10_000 }])
    expect(await grant(large, 1_000)).toBe(1_000)
    await reset({ policy: large, key, cost: 1, limit: 100 })
    expect(await take(large, 1, 100)).toBe(0)
    now += 600
    expect(await take(large, 3, 100)).toBe(0)
    const [outcome] = await store.apply('peek', [{ policy: large, key, cost: 1, limit: 10_000 }])
    expect(outcome?.remaining).toBe(9_000)
    expect(unreadable).toEqual([])
  })
})

it('a grant whose spent units are many is closed under a small limit', async () => {
  const large = policyOf({ name: 'large', limit: 10_000, window: '10s', prefetch: '500ms' })
  expect(await grant(large, 1_000)).toBe(1_000)
  const terms = { id: 1, lifeMs: 500, divisor: 1, closed: [{ id: 2 ** 52, spent: 900 }] }
  await store.grant?.([{ policy: large, key, cost: 1, limit: 100, terms }])
  const [outcome] = await store.apply('peek', [{ policy: large, key, cost: 1, limit: 10_000 }])
  expect(outcome?.remaining).toBe(9_100)
  expect(unreadable).toEqual([])
})

it('a reset shares a call with a question about a policy with prefetch', async () => {
  const own = { policy: holding, key, cost: 1, limit: holding.limit }
  const other = { ...own, policy: policyOf({ ...small, name: 'other' }) }
  await store.apply('consume', [other])
  // The first is under way alone, and the others wait for it together.
  const [, asked, found] = await Promise.all([
    store.apply('peek', [own]),
    Promise.resolve().then(() => store.apply('peek', [own])),
    Promise.resolve().then(() => reset(other)),
  ])
  expect(asked[0]?.remaining).toBe(100)
  expect(found).toEqual([true])
  expect((await store.apply('peek', [other]))[0]?.remaining).toBe(100)
})

it('a key has several grants at a time, and one call grants units of several policies', async () => {
  const tight = policyOf({ ...small, name: 'tight', limit: 10, prefetch: '200ms' })
  const unitsOf = async (id: number) => {
    const terms = { id, lifeMs: 200, divisor: 1, closed: [] }
    const checks = [holding, tight].map((policy) => {
      return { policy, key, cost: 6, limit: policy.limit, terms }
    })
    return (await store.grant?.(checks))?.map(({ units }) => units)
  }
  expect(await unitsOf(1)).toEqual([6, 6])
  expect(await unitsOf(2)).toEqual([6, 4])
  expect(await take(holding, 100)).toBe(88)
  expect(await take(tight, 1)).toBe(0)
})
