import { type Check, type CountingName, type KeyState, type Outcome, Receipt } from '@sluice/core'
import {
  effectiveWindowMs,
  leavesTrace,
  outcomeOf,
  recordedAt,
  remainingUnits,
  waitMs,
} from '@sluice/core/backend'

/** The script's report of one key, after all requests of its row. */
export interface KeyReport {
  /** Two numbers whose meaning the `report` function of the algorithm in Lua gives. */
  readonly x: number
  readonly y: number
  readonly incarnation: number
  /** Milliseconds to wait, or to be held, where only the script can tell; `undefined` where x and y tell. */
  readonly more: number | undefined
}

/** The decision on the request that the key belongs to. */
export interface DecidedAsk {
  readonly now: number
  readonly isAllowed: boolean
  /** True if units were taken, which a receipt can give back. */
  readonly isTaken: boolean
}

type Reader = (check: Check, report: KeyReport, decided: DecidedAsk) => Outcome

/** The outcome of a check, by the functions of core, from the report of its algorithm. */
export const readOutcome: { readonly [name in CountingName]: Reader } = {
  'sliding-log': (check, { x, y, incarnation, more }, decided) => {
    const { policy, cost, limit } = check
    const used = x
    // Where the script leaves the wait out, the oldest unit is the only one that has to leave.
    const oldestMs = cost > 0 && used + cost > limit ? y : 0
    const deniedMs = limit === 0 || cost > limit ? Number.POSITIVE_INFINITY : (more ?? oldestMs)
    const retryAfterMs = decided.isAllowed ? 0 : deniedMs
    return {
      policy,
      allowed: retryAfterMs === 0,
      limit,
      remaining: remainingUnits(limit, limit, used),
      resetMs: effectiveWindowMs(check, { used, capacity: limit, msToNextUnit: y }),
      retryAfterMs,
      delayMs: 0,
      receipt: receiptOf(check, decided, recordedAt(check, decided.now), incarnation),
    }
  },

  'sliding-counter': (check, { x, y, incarnation }, decided) => {
    const startMs = decided.now - (decided.now % check.policy.windowMs)
    const state = { startMs, current: x, previous: y, limit: check.limit }
    return fromState(check, state, decided, receiptOf(check, decided, startMs, incarnation))
  },

  'fixed-window': (check, { x, y, incarnation }, decided) => {
    const startMs = y === 0 ? -1 : decided.now - y + 1
    const state = { startMs, count: x, limit: check.limit }
    return fromState(check, state, decided, receiptOf(check, decided, startMs, incarnation))
  },

  'token-bucket': (check, report, decided) => fromBucket(check, report, decided, 0),
  'leaky-bucket': (check, report, decided) =>
    fromBucket(check, report, decided, report.more ?? heldMs(check, report)),

  concurrency: (check, { x, incarnation }, decided) => {
    const { policy, cost, limit } = check
    const never = limit === 0 || cost > limit
    const fits = cost === 0 || x + cost <= limit
    const deniedMs = never ? Number.POSITIVE_INFINITY : fits ? 0 : policy.retryMs
    const retryAfterMs = decided.isAllowed ? 0 : deniedMs
    return {
      policy,
      allowed: retryAfterMs === 0,
      limit,
      remaining: remainingUnits(limit, limit, x),
      resetMs: undefined,
      retryAfterMs,
      delayMs: 0,
      receipt: receiptOf(check, decided, incarnation, incarnation),
    }
  },

  penalty: ({ policy, cost, limit }, { x: strikes, y: blockedMs }, { isAllowed }) => {
    const retryAfterMs = isAllowed || cost === 0 ? 0 : blockedMs
    return {
      policy,
      allowed: retryAfterMs === 0,
      limit,
      remaining: blockedMs > 0 ? 0 : Math.max(0, limit - strikes),
      resetMs: undefined,
      retryAfterMs,
      delayMs: 0,
      // Strikes are not given back.
      receipt: undefined,
    }
  },
}

function fromBucket(
  check: Check,
  { x, y, incarnation }: KeyReport,
  decided: DecidedAsk,
  delayMs: number,
): Outcome {
  const endsAt = decided.now + y
  const state = { level: x, at: decided.now, endsAt, limit: check.limit }
  return fromState(check, state, decided, receiptOf(check, decided, endsAt, incarnation), delayMs)
}

/**
 * Returns the ms that an allowed request of a leaky bucket is held: until all units before it have
 * drained.
 */
function heldMs({ policy, cost, limit }: Check, { x }: KeyReport): number {
  return Math.ceil(Math.max(0, x - cost * policy.windowMs) / limit)
}

function fromState(
  check: Check,
  state: KeyState,
  { now, isAllowed }: DecidedAsk,
  receipt: Receipt | undefined,
  delayMs = 0,
): Outcome {
  return outcomeOf(state, check, {
    now,
    retryAfterMs: isAllowed ? 0 : waitMs(state, check, now),
    delayMs: isAllowed ? delayMs : 0,
    receipt,
  })
}

/** @param at what a refund has to name: a time, or the number of a lease */
function receiptOf(
  check: Check,
  { isTaken }: DecidedAsk,
  at: number,
  incarnation: number,
): Receipt | undefined {
  return isTaken && leavesTrace(check) ? new Receipt(check, at, incarnation) : undefined
}
