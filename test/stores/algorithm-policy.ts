import {
  type AlgorithmName,
  algorithmNames,
  type Duration,
  type Policy,
  type PolicyFields,
} from '@sluice/core'
import { BucketLife } from './oracle/bucket-life.ts'
import { LeaseLife } from './oracle/lease-life.ts'
import type { Life } from './oracle/life.ts'
import { UnitLife } from './oracle/unit-life.ts'

/** The options that stand beside the limit and the window. */
type OwnFields = Omit<PolicyFields, 'algorithm' | 'limit' | 'window'>

/** The same, and a window in the place of another one. */
type DrawnFields = OwnFields & Pick<PolicyFields, 'window'>

interface TimedFields extends Omit<PolicyFields, 'window'> {
  readonly limit: number
  readonly window?: Duration | undefined
}

/** All that the tests know of single algorithms. */
interface TestedAlgorithm {
  /**
   * By `keyName`-`keyShape`, for a window of a minute: options that count there. A key that changes
   * empties all counts of a rolling deploy.
   */
  readonly counted: { readonly [place: string]: DrawnFields }
  /** The naive model of a key. */
  readonly newLife: () => Life
  /**
   * Options beside the limit and the window that make it admit `limit` units at once.
   * @default none
   */
  readonly atOnce?: (limit: number) => OwnFields
  /** Options of its own for random traces. @default none */
  readonly drawn?: (numbers: {
    readonly window: number
    readonly aligned: boolean
    readonly steps: number
    readonly units: number | undefined
    readonly share: number | undefined
  }) => DrawnFields
  /** The most units that are remembered before some are lost. @default more than tests take */
  readonly maxRemembered?: (limit: number) => number
  /** The longest time to live of a key, for limits of up to twice the declared one and one more, and clocks that are set back. */
  readonly maxTtlMs: (policy: Policy) => number
}

/** Midnight in Dhaka lies in the hour in which traces begin. */
const calendars: { readonly [steps: number]: DrawnFields } = {
  1: { window: { every: 'day', zone: 'Asia/Dhaka' } },
  3: { window: { every: 'week', zone: 'America/New_York' } },
  4: { window: { every: 'month', zone: 'Africa/Cairo' } },
}

const newUnitLife = (): Life => new UnitLife()
const newBucketLife = (): Life => new BucketLife()

export const testedAlgorithms: { readonly [name in AlgorithmName]: TestedAlgorithm } = {
  'sliding-log': {
    counted: { 'log-60000': {}, 'log-60000-r500': { resolution: 500 } },
    newLife: newUnitLife,
    drawn: ({ window, steps }) => (steps > 0 ? { resolution: Math.ceil(window / steps) } : {}),
    maxRemembered: (limit) => 2 * limit,
    maxTtlMs: ({ windowMs, resolutionMs }) => Math.ceil(1.5 * windowMs) + resolutionMs,
  },
  'sliding-counter': {
    counted: { 'counter-60000': {} },
    newLife: newUnitLife,
    maxTtlMs: ({ windowMs }) => 3 * windowMs,
  },
  'fixed-window': {
    counted: {
      'window-60000': {},
      'window-60000-clock': { align: 'clock' },
      'window-month-Europe/Rome': { window: { every: 'month', zone: 'Europe/Rome' } },
    },
    newLife: newUnitLife,
    drawn: ({ aligned, steps }) => (aligned ? { align: 'clock' } : (calendars[steps] ?? {})),
    maxTtlMs: ({ windowMs, clockAligned, calendar }) =>
      (clockAligned || calendar ? 2 : 1) * (windowMs + (calendar ? 7_200_000 : 0)),
  },
  'token-bucket': {
    counted: { 'bucket-60000': { burst: 7 } },
    newLife: newBucketLife,
    drawn: ({ units }) => (units ? { burst: units } : {}),
    maxRemembered: (limit) => limit,
    maxTtlMs: ({ limit, windowMs, burst }) => ((burst ?? 2 * limit + 1) + 1) * windowMs,
  },
  'leaky-bucket': {
    counted: { 'queue-60000': { queue: 7 } },
    newLife: newBucketLife,
    // One request leaves at once, the others wait.
    atOnce: (limit) => ({ queue: Math.max(0, limit - 1) }),
    drawn: ({ window, units, share }) => ({
      ...(units === undefined ? {} : { queue: units - 1 }),
      ...(share === undefined
        ? {}
        : { maxDelay: Math.min(Math.ceil(window * share), 2 ** 31 - 1) }),
    }),
    maxRemembered: (limit) => limit,
    // What waits at twice the limit leaves one by one at a limit of 1.
    maxTtlMs: ({ limit, windowMs, maxDelayMs, queue }) =>
      Math.min(queue * windowMs, maxDelayMs * (2 * limit + 1)) + 2 * windowMs,
  },
  concurrency: {
    counted: { 'leases-60000': {} },
    newLife: () => new LeaseLife(),
    maxTtlMs: ({ windowMs }) => windowMs,
  },
}

/** The algorithms whose units come back with time, so that a wait is exact and not a hint. */
export const exactNames: readonly Exclude<AlgorithmName, 'concurrency'>[] = algorithmNames.filter(
  (name) => name !== 'concurrency',
)

/** Options that make a policy of any algorithm admit `limit` units at once, and then wait for a window, or a lease. */
export function algorithmPolicy(
  algorithm: AlgorithmName,
  { window, ...options }: TimedFields,
): TimedFields {
  const policy = { ...options, algorithm, ...testedAlgorithms[algorithm].atOnce?.(options.limit) }
  if (algorithm === 'concurrency') return { ...policy, ...(window && { lease: window }) }
  return { ...policy, ...(window && { window }) }
}
