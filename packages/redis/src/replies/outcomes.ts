import { type Check, type Counting, type KeyState, type Outcome, Receipt } from '@sluice/core'
import {
  effectiveWindowMs,
  leavesTrace,
  outcomeOf,
  recordedAt,
  remainingUnits,
  unknownOutcome,
  waitMs,
} from '@sluice/core/backend'

/** The report of one key, after all checks of its request. */
export interface KeyReport {
  /** Two numbers whose meaning the `report` function of the algorithm in Lua gives. */
  readonly amount: number
  readonly detail: number
  readonly incarnation: number
  /** Ms to wait, or to be held; `undefined` where `amount` and `detail` tell. */
  readonly explicitMs: number | undefined
  /** Ms by which the time of the key is ahead of a clock that was set back. */
  readonly aheadMs: number
}

/** The decision on the request that the key belongs to. */
export interface DecidedAsk {
  readonly now: number
  readonly isAllowed: boolean
  /** True if units were taken, which a receipt can give back. */
  readonly isTaken: boolean
}

type Reader = (check: Check, report: KeyReport, decided: DecidedAsk) => Outcome

const readLog: Reader = (check, { amount, detail, incarnation, explicitMs }, decided) => {
  const { policy, cost, limit } = check
  const used = amount
  // If the script leaves the wait out, the oldest unit is the only one that has to leave.
  const oldestMs = cost > 0 && used + cost > limit ? detail : 0
  const deniedMs = limit === 0 || cost > limit ? Number.POSITIVE_INFINITY : (explicitMs ?? oldestMs)
  const retryAfterMs = decided.isAllowed ? 0 : deniedMs
  return {
    policy,
    allowed: retryAfterMs === 0,
    limit,
    remaining: remainingUnits(limit, limit, used),
    resetMs: effectiveWindowMs(check, { used, capacity: limit, msToNextUnit: detail }),
    retryAfterMs,
    delayMs: 0,
    receipt: receiptOf(check, decided, recordedAt(check, decided.now), incarnation),
  }
}

/** The outcome of a check, by the functions of core, from the report of its algorithm. */
export const readOutcome: { readonly [name in Counting]: Reader } = {
  'sliding-log': readLog,
  'held-log': readLog,

  'sliding-counter': (check, { amount, detail, incarnation, aheadMs }, decided) => {
    const time = decided.now + aheadMs
    const startMs = time - (time % check.policy.windowMs)
    const state = { startMs, current: amount, previous: detail, limit: check.limit }
    return fromState(check, state, decided, receiptOf(check, decided, startMs, incarnation))
  },

  'fixed-window': (check, { amount, detail, incarnation, aheadMs }, decided) => {
    const startMs = detail === 0 ? -1 : decided.now + aheadMs - detail + 1
    const state = { startMs, count: amount, limit: check.limit }
    return fromState(check, state, decided, receiptOf(check, decided, startMs, incarnation))
  },

  'token-bucket': (check, report, decided) => fromBucket(check, report, decided, 0),
  'leaky-bucket': (check, report, decided) =>
    fromBucket(check, report, decided, report.explicitMs ?? heldMs(check, report)),

  concurrency: (check, { amount, detail }, decided) => {
    const { policy, cost, limit } = check
    const never = limit === 0 || cost > limit
    const fits = cost === 0 || amount + cost <= limit
    const deniedMs = never ? Number.POSITIVE_INFINITY : fits ? 0 : policy.retryMs
    return {
      ...unknownOutcome(check),
      allowed: decided.isAllowed || deniedMs === 0,
      remaining: remainingUnits(limit, limit, amount),
      retryAfterMs: decided.isAllowed ? 0 : deniedMs,
      // As `lua/parts/lease-number.lua` makes it.
      receipt: receiptOf(check, decided, (decided.now % 2 ** 42) * 1000 + detail, 0),
    }
  },

  // Strikes are not given back, so there is no receipt.
  penalty: (check, { amount: strikes, detail: blockedMs }, { isAllowed }) => {
    const retryAfterMs = isAllowed || check.cost === 0 ? 0 : blockedMs
    const remaining = blockedMs > 0 ? 0 : Math.max(0, check.limit - strikes)
    return { ...unknownOutcome(check), allowed: retryAfterMs === 0, remaining, retryAfterMs }
  },
}

/** Returns the outcome of a check that takes a grant of so many units. */
export function grantOutcome(
  check: Check,
  report: KeyReport,
  { now, units, isTaken }: { now: number; units: number; isTaken: boolean },
): Outcome {
  const outcome = readLog(check, report, { now, isAllowed: true, isTaken: false })
  const receipt = isTaken
    ? new Receipt(check, recordedAt(check, now), report.incarnation)
    : undefined
  return { ...outcome, allowed: units > 0, receipt, granted: units }
}

function fromBucket(
  check: Check,
  { amount, detail, incarnation, aheadMs }: KeyReport,
  decided: DecidedAsk,
  delayMs: number,
): Outcome {
  const endsAt = decided.now + detail
  const state = { level: amount, at: decided.now + aheadMs, endsAt, limit: check.limit }
  return fromState(check, state, decided, receiptOf(check, decided, endsAt, incarnation), delayMs)
}

/** An allowed request of a leaky bucket is held until all units before it have drained. */
function heldMs({ policy, cost, limit }: Check, { amount }: KeyReport): number {
  return Math.ceil(Math.max(0, amount - cost * policy.windowMs) / limit)
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

/** @param at the value that a refund has to name: a time, or the number of a lease */
function receiptOf(
  check: Check,
  { isTaken }: DecidedAsk,
  at: number,
  incarnation: number,
): Receipt | undefined {
  return isTaken && leavesTrace(check) ? new Receipt(check, at, incarnation) : undefined
}
