import {
  algorithmNames,
  type Check,
  maxUnits,
  memoryStore,
  type PenaltyOptions,
  type Policy,
  type PolicyFields,
  type StoreOp,
} from '@sluice/core'
import fc from 'fast-check'
import { limiterOf } from '../support/patient-limiter.ts'
import type { AnyCheck } from '../support/store-through.ts'
import { weighted } from '../support/weighted.ts'
import { testedAlgorithms } from './algorithm-policy.ts'

export interface Request {
  readonly op: StoreOp
  /** For a refund, release or renewal, of which decision so far (modulo their number); else unused. */
  readonly settles: number
  /** For a refund: the share of the units that are left of each receipt; 1 for all. */
  readonly share: number
  readonly checks: readonly AnyCheck[]
}

export interface Trace {
  readonly startMs: number
  readonly policies: readonly Policy[]
  /** Requests of one time are decided in one call by a store that batches. */
  readonly steps: readonly { readonly elapsedMs: number; readonly requests: readonly Request[] }[]
}

/** What the policies of a trace are drawn from. */
const usual = {
  policies: 3,
  steps: { minLength: 1, maxLength: 40 },
  /** Steps in a window, or in what else lasts. */
  pace: 1,
  keys: ['a', 'a', 'b', 'c'],
  limits: [0, 1, 2, 3, 5, 10, 50, 200, 1_000],
  windows: [1, 2, 7, 10, 100, 1_000, 60_000, 3_600_000, 60 * 86_400_000],
}

/** Around the edges of what stored values hold: running totals of 24 and of 48 bits, and products of 53. */
const huge: typeof usual = {
  ...usual,
  limits: [1, 128, 2 ** 23 - 1, 2 ** 23, 2 ** 40, 2 ** 47 - 1],
  windows: [1, 2, 7, 64],
}

/** One key that much happens to. */
const busy: typeof usual = {
  policies: 1,
  steps: { minLength: 30, maxLength: 60 },
  pace: 8,
  keys: ['a'],
  limits: [3, 10, 50],
  windows: [10, 100],
}

function policyOptions(
  index: number,
  { limits, windows }: typeof usual,
): fc.Arbitrary<PolicyFields> {
  return fc
    .record({
      algorithm: fc.constantFrom(...algorithmNames),
      limit: fc.constantFrom(...limits),
      window: fc.constantFrom(...windows),
      countDenied: fc.boolean(),
      aligned: fc.boolean(),
      steps: fc.constantFrom(0, 0, 1, 3, 4),
      units: fc.constantFrom(undefined, 1, 2, 7, 1_500),
      share: fc.constantFrom(undefined, 0.1, 0.37, 1, 3),
    })
    .map(({ algorithm, limit, window, countDenied, ...drawn }) => {
      const common = { name: `p${index}`, algorithm, limit }
      if (algorithm === 'concurrency') return { ...common, lease: window, retryAfter: 7 }
      const own = testedAlgorithms[algorithm].drawn?.({ window, ...drawn })
      return { ...common, window, countDenied, ...own }
    })
}

/** Policies as a limiter makes them. */
export function policiesOf(options: readonly PolicyFields[]): readonly Policy[] {
  // One limiter each: a queue and leases may not stand in one, but may meet in a store.
  const store = memoryStore()
  return options.flatMap((policy) => limiterOf({ policies: [policy], store }).policies)
}

export function policyOf(options: PolicyFields): Policy {
  const [policy] = policiesOf([options])
  if (!policy) throw new Error('a limiter has no policy')
  return policy
}

const blocking: fc.Arbitrary<readonly PenaltyOptions[]> = fc
  .record({
    after: fc.constantFrom(1, 2, 3, 5),
    within: fc.constantFrom(...usual.windows),
    for: fc.constantFrom(1, 7, 100, 60_000),
    factor: fc.constantFrom(1, 1.5, 2, 1e300),
    share: fc.constantFrom(1, 1.3, 8, 1_000),
  })
  .map(({ share, ...options }) => [{ ...options, max: Math.floor(options.for * share) }])

/** None, one that blocks by itself, or one by hand alone. */
const penalties: fc.Arbitrary<readonly PenaltyOptions[]> = weighted(
  [3, fc.constant([])],
  [3, blocking],
  [1, fc.constant([{ after: 'never' } as const])],
)

/** Penalties as a limiter makes them. */
function penaltyPolicies(options: readonly PenaltyOptions[]): readonly Policy[] {
  return options.flatMap((penalty) => limiterOf({ penalty }).penalty ?? [])
}

/** How long what a policy decides lasts. */
function lastingMs({ windowMs, penalty }: Policy): readonly number[] {
  return penalty ? [windowMs, penalty.forMs] : [windowMs || 1_000]
}

function elapsed(windowMs: number): fc.Arbitrary<number> {
  return weighted(
    [6, fc.constant(0)],
    [4, fc.integer({ min: 0, max: 3 })],
    [4, fc.integer({ min: 0, max: windowMs })],
    [3, fc.integer({ min: windowMs - 1, max: windowMs + 1 })],
    [1, fc.integer({ min: windowMs, max: 3 * windowMs })],
    [1, fc.integer({ min: -5, max: 5 })],
    [1, fc.constantFrom(-3_600_000, 3_600_000)],
    [1, fc.integer({ min: -3_600_000, max: 0 })],
  )
}

/** Costs around what an algorithm can record, and beyond. */
function largeCosts(policy: Policy): readonly number[] {
  const { limit } = policy
  const most = maxUnits(policy)
  return [2 * limit, 2 * limit + 1, most - 1, most, 2 ** 52, Number.MAX_SAFE_INTEGER]
}

/** One strike, or, by a charge, several. */
function penaltyCheckOf(policy: Policy, { keys }: typeof usual): fc.Arbitrary<Check> {
  return fc
    .record({
      key: fc.constantFrom(...keys),
      cost: weighted([6, fc.constant(1)], [1, fc.integer({ min: 0, max: policy.limit })]),
    })
    .map((rest) => ({ policy, limit: policy.limit, ...rest }))
}

function checkOf(policy: Policy, sizes: typeof usual): fc.Arbitrary<Check> {
  if (policy.algorithm === 'penalty') return penaltyCheckOf(policy, sizes)
  return fc
    .record({
      key: fc.constantFrom(...sizes.keys),
      cost: weighted(
        [6, fc.constant(1)],
        [3, fc.integer({ min: 0, max: policy.limit + 1 })],
        [1, fc.constantFrom(...largeCosts(policy))],
      ),
      limit: weighted(
        [8, fc.constant(policy.limit)],
        [1, fc.nat(Math.min(2 * policy.limit + 1, maxUnits(policy)))],
      ),
    })
    .map((rest) => ({ policy, ...rest }))
}

/** A block of the only penalty by hand. */
function blockOf(policies: readonly Policy[]): fc.Arbitrary<Request> {
  const penalty = policies.filter(({ algorithm }) => algorithm === 'penalty')
  return fc
    .tuple(fc.constantFrom('a', 'b'), fc.constantFrom(1, 5, 100, 60_000, 3_600_000))
    .map(([key, cost]) => ({
      op: 'block',
      settles: 0,
      share: 1,
      checks: penalty.map((policy) => ({ policy, key, cost, limit: policy.limit })),
    }))
}

function requestOf(policies: readonly Policy[], sizes: typeof usual): fc.Arbitrary<Request> {
  const other: fc.Arbitrary<Request> = fc.record({
    op: fc.constantFrom<StoreOp>(
      ...(['consume', 'consume', 'consume', 'consume', 'peek', 'charge', 'reset'] as const),
      ...(['refund', 'refund', 'release', 'renew'] as const),
    ),
    settles: fc.nat(),
    share: fc.constantFrom(1, 1, 1, 0.3, 0.7),
    checks: fc
      .subarray([...policies], { minLength: 1 })
      .chain((some) => fc.tuple(...some.map((policy) => checkOf(policy, sizes)))),
  })
  const hasPenalty = policies.some(({ algorithm }) => algorithm === 'penalty')
  return hasPenalty ? weighted([12, other], [1, blockOf(policies)]) : other
}

/**
 * Traces over a handful of keys, up to three policies and a penalty: bursts, gaps, equal milliseconds, hits on the edge of a window, clocks that are
 * set back and forth, requests of one call that share keys, limits that change under way.
 */
function tracesOf(sizes: typeof usual): fc.Arbitrary<Trace> {
  return fc
    .array(fc.nat(), { minLength: 1, maxLength: sizes.policies })
    .chain((seeds) =>
      fc.tuple(fc.tuple(...seeds.map((_seed, index) => policyOptions(index, sizes))), penalties),
    )
    .map(([options, penalty]) => [...policiesOf(options), ...penaltyPolicies(penalty)])
    .chain((policies) => {
      const step = fc.constantFrom(...policies.flatMap(lastingMs)).chain((ms) =>
        fc.record({
          elapsedMs: elapsed(Math.ceil(ms / sizes.pace)),
          requests: weighted(
            [2, fc.tuple(requestOf(policies, sizes))],
            [1, fc.array(requestOf(policies, sizes), { minLength: 2, maxLength: 6 })],
          ),
        }),
      )
      return fc.record({
        startMs: fc.integer({ min: 1_795_195_800_000, max: 1_795_199_400_000 }),
        policies: fc.constant(policies),
        steps: fc.array(step, sizes.steps),
      })
    })
}

export const traces: fc.Arbitrary<Trace> = weighted([2, tracesOf(usual)], [1, tracesOf(busy)])

/** The same for limits that nobody can count one by one. */
export const hugeTraces: fc.Arbitrary<Trace> = tracesOf(huge)

type ExampleStep = readonly [elapsedMs: number, op: StoreOp, cost: number, limit?: number]

/** Requests of one key. A refund is of the first decision. */
function exampleOf(options: Omit<PolicyFields, 'name'>, steps: readonly ExampleStep[]): Trace {
  const policy = policyOf({ name: 'p', ...options })
  return {
    startMs: 1_795_195_800_000,
    policies: [policy],
    steps: steps.map(([elapsedMs, op, cost, limit = policy.limit]) => ({
      elapsedMs,
      requests: [{ op, settles: 0, share: 1, checks: [{ policy, key: 'a', cost, limit }] }],
    })),
  }
}

/** Units that together leave the whole numbers which doubles hold, in a log that is never empty. */
export const endlessTrace: Trace = exampleOf(
  { limit: 2 ** 47 - 1, window: 64 },
  Array(160).fill([21, 'charge', 2 ** 46]),
)

/** A bucket that is empty earlier than a receipt says, since its limit was raised. */
export const raisedTrace: Trace = exampleOf({ algorithm: 'token-bucket', limit: 50, window: 100 }, [
  [0, 'consume', 1, 1],
  [0, 'consume', 1],
  [4, 'consume', 1],
  [0, 'refund', 1],
])
