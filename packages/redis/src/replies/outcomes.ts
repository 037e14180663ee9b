import { type Check, type Outcome, Receipt } from '@sluice/core'
import { algorithmOf, leavesTrace, outcomeOf, type TwinReading, waitMs } from '@sluice/core/backend'
import type { QueuedOutcome } from '../model/queued-request.ts'

/** The decision on the request that a key belongs to. */
export interface DecidedAsk {
  readonly now: number
  readonly isAllowed: boolean
  /** True if units were taken, which a receipt can give back. */
  readonly isTaken: boolean
}

/** Returns the outcome of a check, by the functions of core, from the report of its algorithm. */
export function readOutcome(
  check: Check,
  report: TwinReading,
  { now, isAllowed, isTaken }: DecidedAsk,
): Outcome {
  const { counts, fromTwin } = algorithmOf(check.policy)
  const read = fromTwin(check, report, now)
  const { state, at } = read
  const hasReceipt = isTaken && counts !== 'strikes' && leavesTrace(check)
  const wait = isAllowed ? 0 : waitMs(state, check, now)
  const outcome = outcomeOf(state, check, now)
  const isKnown = wait > 0 && wait < Number.POSITIVE_INFINITY
  outcome.denyFor(isKnown ? (read.waitMs ?? wait) : wait)
  if (isAllowed) outcome.delayMs = read.delayMs ?? 0
  if (hasReceipt) outcome.receipt = new Receipt(check, at, report.incarnation)
  return outcome
}

/** Returns the outcome of a check that takes a grant of so many units. */
export function grantOutcome(
  check: Check,
  report: TwinReading,
  { now, units, isTaken }: { now: number; units: number; isTaken: boolean },
): QueuedOutcome {
  const outcome = readOutcome(check, report, { now, isAllowed: true, isTaken: false })
  const { at } = algorithmOf(check.policy).fromTwin(check, report, now)
  const receipt = isTaken ? new Receipt(check, at, report.incarnation) : undefined
  return { ...outcome, allowed: units > 0, receipt, granted: units }
}
