import {
  type AlgorithmName,
  algorithmNames,
  type Check,
  memoryStore,
  type Policy,
  type Store,
} from '@sluice/core'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { algorithmPolicy } from './algorithm-policy.ts'
import { packedDriver, sortedSetDriver } from './store-drivers.ts'
import { policiesOf, traces } from './traces.ts'

const start = 1_795_195_800_123
let now = start

afterEach(() => vi.restoreAllMocks())

function memoryAt(time: number): ReturnType<typeof memoryStore> {
  now = time
  vi.spyOn(Date, 'now').mockImplementation(() => now)
  return memoryStore()
}

/** Requests of one client in time: how long after the one before, and what each costs. */
function arrivals(windowMs: number): fc.Arbitrary<{ elapsedMs: number; cost: number }[]> {
  const elapsedMs = fc.oneof(
    { weight: 3, arbitrary: fc.constant(0) },
    { weight: 3, arbitrary: fc.integer({ min: 0, max: Math.max(1, Math.floor(windowMs / 4)) }) },
    { weight: 2, arbitrary: fc.integer({ min: windowMs - 1, max: windowMs + 1 }) },
  )
  return fc.array(fc.record({ elapsedMs, cost: fc.integer({ min: 0, max: 4 }) }), {
    minLength: 1,
    maxLength: 80,
  })
}

const shapes = fc.record({
  limit: fc.integer({ min: 1, max: 12 }),
  window: fc.constantFrom(1, 3, 50, 1_000, 60_000),
  steps: fc.constantFrom(0, 1, 3, 8),
})

describe('sliding-log', () => {
  it('admits no more than the limit in any rolling window', () => {
    const cases = shapes.chain((shape) => fc.tuple(fc.constant(shape), arrivals(shape.window)))
    fc.assert(
      fc.property(cases, ([{ limit, window, steps }, requests]) => {
        const store = memoryAt(start)
        const resolution = steps > 0 ? { resolution: Math.ceil(window / steps) } : {}
        const [policy] = policiesOf([{ name: 'p', limit, window, ...resolution }])
        if (!policy) throw new Error('one policy')
        const admitted: { time: number; cost: number }[] = []
        for (const { elapsedMs, cost } of requests) {
          now += elapsedMs
          const [outcome] = store.apply('consume', [{ policy, key: 'k', cost, limit }])
          if (outcome?.allowed) admitted.push({ time: now, cost })
        }
        for (const { time } of admitted) {
          const inWindow = admitted.filter(
            (other) => other.time > time - window && other.time <= time,
          )
          expect(inWindow.reduce((sum, { cost }) => sum + cost, 0)).toBeLessThanOrEqual(limit)
        }
      }),
      { numRuns: 1_000 },
    )
  })

  it('admits a burst on both sides of a boundary only once', () => {
    const store = memoryAt(60_000 * 29_919_930 - 1)
    const [policy] = policiesOf([{ name: 'p', limit: 100, window: '1m' }])
    if (!policy) throw new Error('one policy')
    const burst = (): number => {
      const checks = [{ policy, key: 'k', cost: 1, limit: 100 }]
      return Array.from({ length: 100 }, () => store.apply('consume', checks)[0]).filter(
        (outcome) => outcome?.allowed,
      ).length
    }
    expect(burst()).toBe(100)
    now += 2
    expect(burst()).toBe(0)
  })
})

/** A wait for a lease is a hint. */
const exactNames = algorithmNames.filter((name) => name !== 'concurrency')

describe.each(exactNames)('%s', (algorithm: AlgorithmName) => {
  it('admits a lone client that waits as told, and not a millisecond before', () => {
    const pair = fc.tuple(shapes, shapes)
    const cases = pair.chain((both) => fc.tuple(fc.constant(both), arrivals(both[0].window)))
    fc.assert(
      fc.property(cases, ([both, requests]) => {
        const store = memoryAt(start)
        const policies = policiesOf(
          both.map(({ limit, window }, index) =>
            algorithmPolicy(algorithm, { name: `p${index}`, limit, window }),
          ),
        )
        for (const { elapsedMs, cost } of requests) {
          now += elapsedMs
          const checks = policies.map((policy) => ({ policy, key: 'k', cost, limit: policy.limit }))
          const outcomes = store.apply('consume', checks)
          const waitMs = Math.max(...outcomes.map(({ retryAfterMs }) => retryAfterMs))
          if (waitMs === 0 || waitMs === Number.POSITIVE_INFINITY) continue
          const denied = now
          now = denied + waitMs - 1
          expect(store.apply('peek', checks).every(({ allowed }) => allowed)).toBe(false)
          now = denied + waitMs
          expect(store.apply('peek', checks).every(({ allowed }) => allowed)).toBe(true)
          now = denied
        }
      }),
      { numRuns: 500 },
    )
  })

  it('is the same after a denial as before it, at every later instant', () => {
    const cases = shapes.chain((shape) =>
      fc.tuple(fc.constant(shape), arrivals(shape.window), fc.array(fc.nat(200_000))),
    )
    fc.assert(
      fc.property(cases, ([{ limit, window }, requests, later]) => {
        const store = memoryAt(start)
        const [policy] = policiesOf([algorithmPolicy(algorithm, { name: 'p', limit, window })])
        if (!policy) throw new Error('one policy')
        const seen = (): unknown => {
          const instant = now
          const answers = later.map((ms) => {
            now = instant + ms
            return strip(store, { policy, key: 'k', cost: 1, limit })
          })
          now = instant
          return answers
        }
        for (const { elapsedMs, cost } of requests) {
          now += elapsedMs
          const before = seen()
          const [outcome] = store.apply('consume', [{ policy, key: 'k', cost, limit }])
          if (!outcome?.allowed) expect(seen()).toEqual(before)
        }
      }),
      { numRuns: 200 },
    )
  })
})

function strip(store: ReturnType<typeof memoryStore>, check: Check): unknown {
  return store.apply('peek', [check]).map(({ policy: _, ...rest }) => rest)
}

describe('keys in Redis', () => {
  let redis: RedisServer

  beforeAll(async () => {
    redis = await startRedis()
  })

  afterAll(async () => {
    await redis.stop()
  })

  it.each([packedDriver, sortedSetDriver])(
    'live no longer than they count, after every step ($name)',
    { timeout: 60_000 },
    async (driver) => {
      await fc.assert(
        fc.asyncProperty(traces, async ({ startMs, policies, steps }) => {
          let clock = startMs
          const { store, close } = await driver.open(redis.url, () => clock)
          try {
            for (const { elapsedMs, requests } of steps) {
              clock += elapsedMs
              for (const { op, checks } of requests) {
                await refundAfter(store, op, checks)
                await expectBounded(policies)
              }
            }
          } finally {
            await close()
            await redis.cli('FLUSHALL')
          }
        }),
        { numRuns: 40 },
      )
    },
  )

  /** Refunds go to what was just taken, since their receipts come from this store. */
  async function refundAfter(store: Store, op: string, checks: readonly Check[]): Promise<void> {
    if (op !== 'refund') {
      await store.apply(op as 'consume', checks)
      return
    }
    const outcomes = await store.apply('charge', checks)
    const taken = outcomes.flatMap(({ receipt }) =>
      receipt ? [{ ...receipt.check, receipt }] : [],
    )
    if (taken.length > 0) await store.apply('refund', taken)
  }

  async function expectBounded(policies: readonly Policy[]): Promise<void> {
    const found = (await redis.cli('KEYS', '*')) as Buffer[] | string[]
    for (const key of found.map(String)) {
      const policy = policies.find(({ id }) => key.split(':')[2]?.startsWith(`${id}~`))
      if (!policy) throw new Error(`no policy for ${key}`)
      const ttlMs = Number(await redis.cli('PTTL', key))
      expect(ttlMs, key).toBeGreaterThan(0)
      expect(ttlMs, key).toBeLessThanOrEqual(longestTtlMs(policy))
    }
  }
})

/** How long a key may live, by a clock that is not Redis' own, and limits from 1 up to twice the declared one and one more. */
function longestTtlMs({
  algorithm,
  limit,
  windowMs,
  resolutionMs,
  burst,
  maxDelayMs,
  penalty,
}: Policy): number {
  const marginMs = 10_000
  if (algorithm === 'penalty') {
    const { maxMs } = penalty ?? { maxMs: 0 }
    return Math.max(maxMs, 3_600_000) + Math.max(maxMs, windowMs) + marginMs
  }
  if (algorithm === 'sliding-log') return Math.ceil(1.5 * windowMs) + resolutionMs + marginMs
  if (algorithm === 'sliding-counter') return 2 * windowMs + marginMs
  if (algorithm === 'token-bucket') return (burst ?? 2 * limit + 1) * windowMs + marginMs
  if (algorithm === 'leaky-bucket') return maxDelayMs + windowMs + marginMs
  return windowMs + marginMs
}
