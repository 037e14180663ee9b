import {
  algorithms,
  type Check,
  type Counted,
  type CountingName,
  effectiveWindowMs,
  leavesTrace,
  type Outcome,
  outcomeOf,
  Receipt,
  recordedAt,
  remainingUnits,
  waitMs,
} from '@sluice/core'

/** What the script reports of one key, after all requests of its row. */
export interface Report {
  /** Two numbers whose meaning the `report` function of the algorithm in Lua gives. */
  readonly x: number
  readonly y: number
  readonly incarnation: number
  /** Milliseconds to wait, or to be held, where the script has to say. */
  readonly more: number
}

/** What is known of one request of a row. */
interface Answer {
  readonly now: number
  readonly isAllowed: boolean
  /** Whether units were taken, which a receipt can give back. */
  readonly isTaken: boolean
  /** How many equal requests after this one were allowed, and are in the report. */
  readonly later: number
}

type Reader = (check: Check, report: Report, answer: Answer) => Outcome

/** The outcome of a check, by the functions of core, from the report of its algorithm. */
export const readOutcome: { readonly [name in CountingName]: Reader } = {
  'sliding-log': (check, { x, y, incarnation, more }, answer) => {
    const { policy, cost, limit } = check
    const used = x - answer.later * cost
    const waitMs = limit === 0 || cost > limit ? Number.POSITIVE_INFINITY : more
    const retryAfterMs = answer.isAllowed ? 0 : waitMs
    return {
      policy,
      allowed: retryAfterMs === 0,
      limit,
      remaining: remainingUnits(limit, limit, used),
      resetMs: effectiveWindowMs(check, { used, capacity: limit, msToNextUnit: y }),
      retryAfterMs,
      delayMs: 0,
      receipt: receiptOf(check, answer, recordedAt(check, answer.now), incarnation),
    }
  },

  'sliding-counter': (check, { x, y, incarnation }, answer) => {
    const startMs = answer.now - (answer.now % check.policy.windowMs)
    const current = x - answer.later * check.cost
    const state = { startMs, current, previous: y, limit: check.limit }
    return fromState(check, state, answer, receiptOf(check, answer, startMs, incarnation))
  },

  'fixed-window': (check, { x, y, incarnation }, answer) => {
    const startMs = y === 0 ? -1 : answer.now - y + 1
    const state = { startMs, count: x - answer.later * check.cost, limit: check.limit }
    return fromState(check, state, answer, receiptOf(check, answer, startMs, incarnation))
  },

  'token-bucket': (check, report, answer) => fromBucket(check, report, answer, 0),
  'leaky-bucket': (check, report, answer) => fromBucket(check, report, answer, report.more),

  concurrency: (check, { x, incarnation }, answer) => {
    const { policy, cost, limit } = check
    const never = limit === 0 || cost > limit
    const fits = cost === 0 || x + cost <= limit
    const waitMs = never ? Number.POSITIVE_INFINITY : fits ? 0 : policy.retryMs
    const retryAfterMs = answer.isAllowed ? 0 : waitMs
    return {
      policy,
      allowed: retryAfterMs === 0,
      limit,
      remaining: remainingUnits(limit, limit, x),
      resetMs: undefined,
      retryAfterMs,
      delayMs: 0,
      receipt: receiptOf(check, answer, incarnation, incarnation),
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
  { x, y, incarnation }: Report,
  answer: Answer,
  delayMs: number,
): Outcome {
  const { policy, cost, limit } = check
  const level = x - answer.later * cost * policy.windowMs
  const endsAt = answer.now + (answer.later === 0 ? y : Math.ceil(level / limit))
  const state = { level, at: answer.now, endsAt, limit }
  return fromState(check, state, answer, receiptOf(check, answer, endsAt, incarnation), delayMs)
}

function fromState(
  check: Check,
  state: Counted,
  { now, isAllowed }: Answer,
  receipt: Receipt | undefined,
  delayMs = 0,
): Outcome {
  const counter = { algorithm: algorithms[check.policy.algorithm], state }
  return outcomeOf(counter, check, {
    now,
    retryAfterMs: isAllowed ? 0 : waitMs(counter, check, now),
    delayMs: isAllowed ? delayMs : 0,
    receipt,
  })
}

/** @param at what a refund has to name: a time, or the number of a lease */
function receiptOf(
  check: Check,
  { isTaken }: Answer,
  at: number,
  incarnation: number,
): Receipt | undefined {
  return isTaken && leavesTrace(check) ? new Receipt(check, at, incarnation) : undefined
}
