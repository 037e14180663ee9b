import { refundQuietly } from '../ledger/grant-calls.ts'
import type { GrantCaller } from '../ledger/hot-policy.ts'
import type { Prefetcher } from '../ledger/prefetcher.ts'
import { type ChangeAtStore, type Check, giveBack, type Receipt } from '../model/check.ts'
import { type Decision, decisionOf } from '../model/decision.ts'
import type { DecidingOp, Outcome } from '../model/store.ts'
import { andThen, type MaybePromise } from '../runtime/maybe-promise.ts'

/** Decides checks that have a limit. */
export type AskStore = (
  op: DecidingOp,
  checks: readonly Check[],
  request?: object,
) => MaybePromise<Decision>

/**
 * Returns a function that answers checks by grants, and asks the store for the others alone. If one
 * of the others denies, the units come back to their grants.
 */
export function decideByGrants(
  prefetcher: Prefetcher,
  caller: GrantCaller,
  askStore: AskStore,
): AskStore {
  /** Returns whether the units are back in their grant. */
  const undo = (receipt: Receipt): boolean =>
    giveBack({ ...receipt.check, receipt }, refundAtStore) === true
  const refundAtStore: ChangeAtStore = (_op, held) => refundQuietly(caller, held)
  return (op, checks, request) => {
    const [only] = checks
    if (only && checks.length === 1) {
      const outcome = prefetcher.answer(op, only, caller)
      return outcome ? decisionOf([outcome], 'store') : askAndRefill(op, checks, request)
    }
    const here = checks.map((check) => prefetcher.answer(op, check, caller))
    const others = checks.filter((_, index) => !here[index])
    if (others.length === checks.length) return askAndRefill(op, checks, request)
    if (others.length === 0) return decisionOf(here.flatMap(known), 'store')
    const decision = askAndRefill(op, others, request)
    return andThen(decision, (known) => joined(known, here, undo))
  }

  function askAndRefill(...[op, checks, request]: Parameters<AskStore>): MaybePromise<Decision> {
    const decision = askStore(op, checks, request)
    for (const check of checks) prefetcher.refill(op, check)
    return decision
  }
}

function known(outcome: Outcome | undefined): readonly Outcome[] {
  return outcome ? [outcome] : []
}

/** Puts the outcomes of grants in their places. A denied request takes nothing. */
function joined(
  decision: Decision,
  here: readonly (Outcome | undefined)[],
  undo: (receipt: Receipt) => boolean,
): Decision {
  const local = decision.allowed ? here : here.map((one) => one && notTaken(one, undo))
  // The failure modes `open` and `closed` have no outcomes.
  if (decision.outcomes.length === 0) return decision
  const others = decision.outcomes.values()
  const outcomes = local.flatMap((one) => known(one ?? others.next().value))
  return { ...decision, outcomes }
}

function notTaken(outcome: Outcome, undo: (receipt: Receipt) => boolean): Outcome {
  const { receipt, remaining = 0, limit } = outcome
  if (!receipt) return outcome
  const left = undo(receipt) ? Math.min(limit, remaining + receipt.check.cost) : remaining
  return { ...outcome, remaining: left, receipt: undefined }
}
