import {
  type CheckLimiter,
  type Decision,
  isPromise,
  memoryStore,
  type PolicyFields,
} from '@sluice/core'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { fullestWindow, type Told } from '../oracle/witness.ts'
import { fakeClocks } from '../prefetch/simulated-store.ts'
import { limiterOf } from '../support/patient-limiter.ts'
import { scaled } from '../support/scale.ts'
import { NetworkStore } from './network-store.ts'

const processes = 3
const maxUncounted = 6
const limit = 20
const windowMs = 2_000
const keys = ['plain', 'refunded', 'reset', 'changing'] as const

beforeEach(fakeClocks)
afterEach(() => {
  vi.useRealTimers()
})

const step = fc.record({
  process: fc.nat({ max: processes - 1 }),
  key: fc.constantFrom(...keys),
  requests: fc.integer({ min: 1, max: 12 }),
  cost: fc.oneof(
    { weight: 4, arbitrary: fc.constant(1) },
    { weight: 1, arbitrary: fc.nat({ max: 7 }) },
  ),
  action: fc.oneof(
    { weight: 12, arbitrary: fc.constant('none' as const) },
    {
      weight: 5,
      arbitrary: fc.constantFrom(
        ...(['cut', 'down', 'up', 'slow', 'stuck', 'quick', 'reset', 'peek', 'charge'] as const),
      ),
    },
  ),
  waitMs: fc.oneof(fc.nat({ max: 8 }), fc.nat({ max: 8 }), fc.nat({ max: 400 })),
})

type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never

/** A fleet on one store, and what it has admitted. */
class Fleet {
  readonly admissions: Told['admissions'][number][] = []
  /** Times at which the store has reset a key. */
  readonly #resets: number[] = []
  readonly stores: readonly NetworkStore[]
  readonly #limiters: readonly CheckLimiter[]

  constructor(policy: Partial<PolicyFields>) {
    const shared = memoryStore()
    this.stores = Array.from({ length: processes }, () => new NetworkStore(shared, this.#resets))
    this.#limiters = this.stores.map((store) =>
      limiterOf({
        policies: [
          { name: 'a', limit, window: windowMs, async: { maxUncounted }, ...policy },
          { name: 'wide', limit: 1_000, window: '1m', async: { maxUncounted } },
          { name: 'exact', limit: 1_000, window: '1m' },
        ],
        store,
        instances: processes,
        // What failure modes admit would come on top.
        failureMode: 'closed',
        observers: { onStoreError: () => undefined },
      }),
    )
  }

  async act({ process, key, requests, cost, action, waitMs }: Step): Promise<void> {
    const [store, limiter] = [this.stores[process], this.#limiters[process]]
    if (!store || !limiter) return
    if (action === 'cut') store.cut()
    if (action === 'down' || action === 'up') store.isDown = action === 'down'
    if (action === 'slow') store.delays = { requestDelayMs: 40, replyDelayMs: 30 }
    if (action === 'stuck') store.delays = { requestDelayMs: 5, replyDelayMs: 350 }
    if (action === 'quick') store.delays = { requestDelayMs: 1, replyDelayMs: 1 }
    if (action === 'peek') void limiter.peek(key, { cost })
    if (action === 'charge') void limiter.charge('other', { cost })
    if (action === 'reset') void limiter.reset('reset').catch(() => undefined)
    for (let i = 0; i < requests; i += 1) this.#consume(limiter, key, { cost, number: i })
    await vi.advanceTimersByTimeAsync(waitMs)
  }

  #consume(
    limiter: CheckLimiter,
    key: string,
    { cost, number }: { cost: number; number: number },
  ): void {
    const [policy, wide, exact] = limiter.policies
    if (!policy || !wide || !exact) return
    const isLow = key === 'changing' && Math.floor(Date.now() / 3_000) % 2 === 1
    const check = { policy, key, cost, limit: isLow ? limit / 2 : limit }
    const beside = [
      { policy: wide, key, cost: 1, limit: wide.limit },
      { policy: exact, key, cost: 1, limit: exact.limit },
    ].slice(0, [0, 1, 0, 2, 0, 1][number % 6])
    const here = Date.now()
    const settle = (decision: Decision): void => {
      const { receipt } = decision.outcomes.find((outcome) => outcome.policy === policy) ?? {}
      if (!decision.allowed || !receipt) return
      if (key === 'refunded' && number % 3 === 0) {
        void limiter.refund(decision)
        return
      }
      const isHere = receipt.at === 0
      // What was taken before a reset counts no more. In its millisecond, nobody knows which came first.
      if (key === 'reset' && !isHere && this.#resets.includes(receipt.at)) return
      const resets = isHere
        ? this.#resets.length
        : this.#resets.filter((atMs) => atMs < receipt.at).length
      const counted = key === 'reset' ? `${key} ${resets}` : key
      this.admissions.push({ key: counted, atMs: isHere ? here : receipt.at, units: cost })
    }
    const decision = limiter.decide([check, ...beside])
    if (isPromise(decision)) void decision.then(settle)
    else settle(decision)
  }

  async close(): Promise<void> {
    for (const store of this.stores) store.cut()
    await vi.advanceTimersByTimeAsync(15_000)
  }
}

async function run(
  policy: Partial<PolicyFields>,
  steps: readonly Step[],
): Promise<Told['admissions']> {
  const fleet = new Fleet(policy)
  for (const each of steps) await fleet.act(each)
  await fleet.close()
  return fleet.admissions
}

const runs = { numRuns: scaled(15, 150) }
const steps = fc.array(step, { minLength: 20, maxLength: 80 })
const most = limit + processes * maxUncounted

describe(`${processes} processes that decide by the last known state`, () => {
  it('go beyond the limit of no rolling window by more than the bound', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (some) => {
        const admissions = await run({}, some)
        for (const key of new Set(admissions.map((one) => one.key))) {
          const units = fullestWindow({ admissions, resets: [] }, key, windowMs)
          expect(units).toBeLessThanOrEqual(most)
        }
      }),
      runs,
    )
  })

  it('go beyond the limit of no fixed window by more than the bound', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (some) => {
        const admissions = await run({ algorithm: 'fixed-window', align: 'clock' }, some)
        const windows = new Map<string, number>()
        for (const { key, atMs, units } of admissions) {
          // What the store took is known by its window alone, which a reset does not end.
          if (key.startsWith('reset')) continue
          const window = `${key} ${Math.floor(atMs / windowMs)}`
          windows.set(window, (windows.get(window) ?? 0) + units)
        }
        for (const [window, units] of windows) {
          expect({ window, units, isOver: units > most }).toMatchObject({ isOver: false })
        }
      }),
      runs,
    )
  })
})
