import { definePolicy, type PolicyOptions, type Store } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import { describe, expect } from 'vitest'
import { checkOf } from '../support/patient-limiter.ts'
import { it } from '../support/redis-test.ts'

let opened = 0
let store: Store
let now = 0

it.beforeEach(({ client }) => {
  opened += 1
  now = 1_795_195_800_000
  const own = { prefix: `grants${opened}`, clock: () => now, denialTtlMs: 0, heartbeatMs: 0 }
  store = redisStore(client, { ...own, batch: { maxInFlight: 1 } })
})

const small = { name: 'hot', limit: 100, window: '2s' } as const

function policyOf(options: PolicyOptions) {
  return definePolicy(options, '')
}

const holding = policyOf({ ...small, prefetch: '200ms' })

/** Returns the units of a grant that nobody closes. */
async function grant(policy: typeof holding, units: number) {
  const terms = { id: 2 ** 52, lifeMs: policy.prefetchMs, divisor: 1, closed: [] }
  const [granted] = (await store.grant?.([{ ...checkOf(policy, { cost: units }), terms }])) ?? []
  return granted?.units
}

/** Takes units one by one; returns how many were admitted. */
async function take(policy: typeof holding, units: number) {
  let admitted = 0
  for (let i = 0; i < units; i += 1) {
    const [outcome] = await store.apply('consume', [checkOf(policy)])
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
})

it('a reset shares a call with a question about a policy with prefetch', async () => {
  const own = checkOf(holding)
  const other = { ...own, policy: policyOf({ ...small, name: 'other' }) }
  await store.apply('consume', [other])
  // The first is under way alone, and the others wait for it together.
  const [, asked, found] = await Promise.all([
    store.apply('peek', [own]),
    Promise.resolve().then(() => store.apply('peek', [own])),
    Promise.resolve().then(() => store.change({ op: 'reset', checks: [other] })),
  ])
  expect(asked[0]?.remaining).toBe(100)
  expect(found).toEqual([true])
  expect((await store.apply('peek', [other]))[0]?.remaining).toBe(100)
  expect(await take(holding, 1)).toBe(1)
  expect(await store.change({ op: 'reset', checks: [own] })).toEqual([true])
})

it('a key has several grants at a time, and one call grants units of several policies', async () => {
  const tight = policyOf({ ...small, name: 'tight', limit: 10, prefetch: '200ms' })
  const unitsOf = async (id: number) => {
    const terms = { id, lifeMs: 200, divisor: 1, closed: [] }
    const checks = [holding, tight].map((policy) => ({ ...checkOf(policy, { cost: 6 }), terms }))
    return (await store.grant?.(checks))?.map(({ units }) => units)
  }
  expect(await unitsOf(1)).toEqual([6, 6])
  expect(await unitsOf(2)).toEqual([6, 4])
  expect(await take(holding, 100)).toBe(88)
  expect(await take(tight, 1)).toBe(0)
})
