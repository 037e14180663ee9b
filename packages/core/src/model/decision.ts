import { algorithmOf } from '../algorithms/table.ts'
import { andThen, isPromise, type MaybePromise, together } from '../runtime/maybe-promise.ts'
import type { Check } from './check.ts'
import type { DecidingOp, Outcome } from './store.ts'

/**
 * The source of a decision: the store, the failure mode if the store failed, or 'shed' if the store
 * was not called for lack of capacity.
 */
export type DecisionSource = 'store' | 'fallback' | 'open' | 'closed' | 'shed'

/** The answer for a request. A denial is a value, never thrown. */
export interface Decision {
  readonly allowed: boolean
  /**
   * The limit of the policy that stops the client first, or, during a block, of the first policy;
   * `undefined` without outcomes.
   */
  readonly limit?: number | undefined
  /** The remaining units of this policy, and 0 during a block; `undefined` if unknown. */
  readonly remaining?: number | undefined
  /**
   * One per enforced policy, in configuration order, the penalty last; none if no policy was
   * checked (`open`, `closed`, `shed`).
   */
  readonly outcomes: readonly Outcome[]
  /** 0 if allowed; otherwise the longest wait of the outcomes. `Infinity`: waiting cannot help. */
  readonly retryAfterMs: number
  /** Time (ms) to hold an allowed request before it continues: the longest of its outcomes. */
  readonly delayMs: number
  readonly source: DecisionSource
  /** Opaque: units that shadow policies took for an allowed request. A refund returns them. */
  readonly shadow?: ShadowRun | undefined
}

/** A request is allowed if every policy allows it; otherwise it waits for the slowest. */
export function decisionOf(
  outcomes: readonly Outcome[],
  checks: readonly Pick<Check, 'cost'>[],
  source: DecisionSource,
): Decision {
  let retryAfterMs = 0
  let delayMs = 0
  let allowed = true
  for (const outcome of outcomes) {
    if (outcome.delayMs > delayMs) delayMs = outcome.delayMs
    if (outcome.retryAfterMs > retryAfterMs) retryAfterMs = outcome.retryAfterMs
    if (!outcome.allowed) allowed = false
  }
  if (!allowed) delayMs = 0
  const binding = outcomes[bindingIndex(outcomes, checks)]
  // The number of strikes that lead to a block is no limit of the client.
  const isBlock = !allowed && binding !== undefined && countsStrikes(binding)
  const limit = (isBlock ? outcomes[0] : binding)?.limit
  const remaining = isBlock ? 0 : binding?.remaining
  return { allowed, limit, remaining, outcomes, retryAfterMs, delayMs, source }
}

function countsStrikes({ policy }: Outcome): boolean {
  return algorithmOf(policy).counts === 'strikes'
}

/**
 * Decides checks of which this process answers some itself, as one decision.
 * @param here the answers of this process; `undefined` for the other checks
 * @param next decides the other checks
 * @param untake called for an answer of this process if another check denies
 */
export function decideOthers(
  checks: readonly Check[],
  here: readonly (Outcome | undefined)[],
  next: (others: readonly Check[]) => MaybePromise<Decision>,
  untake?: (outcome: Outcome) => Outcome,
): MaybePromise<Decision> {
  if (here.every((one) => one !== undefined)) return decisionOf(here, checks, 'store')
  const others = checks.filter((_, index) => !here[index])
  if (others.length === checks.length) return next(checks)
  return andThen(next(others), (decision) => {
    const { allowed, outcomes, source } = decision
    const own = allowed || !untake ? here : here.map((one) => one && untake(one))
    // The failure modes `open` and `closed` have no outcomes.
    if (outcomes.length === 0) return decision
    const decided = outcomes.values()
    const all = own.flatMap((one) => one ?? decided.next().value ?? [])
    return decisionOf(all, checks, source)
  })
}

/**
 * Returns the index of the outcome that stops a client first. Of denials, it is the one with the
 * longest wait. Otherwise it is the one that lets the fewest requests of its cost pass, then the
 * one that resets last, then the first. -1 if there are no outcomes.
 * @see headers/src/values/policy-state.ts, which has this rule for the policies that clients see
 */
export function bindingIndex(
  outcomes: readonly Outcome[],
  checks: readonly Pick<Check, 'cost'>[],
): number {
  let binding = outcomes.length === 0 ? -1 : 0
  // A plain loop: this runs for each observed decision.
  for (let index = 1; index < outcomes.length; index += 1) {
    const one = outcomes[index]
    const other = outcomes[binding]
    if (!one || !other) continue
    if (one.allowed !== other.allowed) {
      if (other.allowed) binding = index
    } else if (!one.allowed) {
      if (one.retryAfterMs > other.retryAfterMs) binding = index
    } else {
      const passes = passesOf(one, checks[index]) - passesOf(other, checks[binding])
      const isLater = (one.resetMs ?? -1) > (other.resetMs ?? -1)
      if (passes < 0 || (passes === 0 && isLater)) binding = index
    }
  }
  return binding
}

/** Returns how many further requests pass. No client can use up strikes. */
function passesOf(outcome: Outcome, check: Pick<Check, 'cost'> | undefined): number {
  const { remaining } = outcome
  const isUnbounded = remaining === undefined || countsStrikes(outcome)
  return isUnbounded ? Number.MAX_VALUE : Math.floor(remaining / Math.max(1, check?.cost ?? 1))
}

/** Returns the decision with the units that shadow policies took. A spread would cost more. */
export function withShadow(decision: Decision, shadow: ShadowRun): Decision {
  const { allowed, limit, remaining, outcomes, retryAfterMs, delayMs, source } = decision
  return { allowed, limit, remaining, outcomes, retryAfterMs, delayMs, source, shadow }
}

/** The decision of each shadow policy for one request. They may come after the request's own. */
export class ShadowRun {
  /** Never rejects. */
  decisions: MaybePromise<readonly Decision[]>

  constructor(decisions: readonly MaybePromise<Decision>[]) {
    const all = together(decisions)
    this.decisions = all
    if (isPromise(all)) void all.then((known) => this.#learn(known))
  }

  /** The outcomes known so far. */
  get outcomes(): readonly Outcome[] {
    return isPromise(this.decisions) ? [] : this.decisions.flatMap(({ outcomes }) => outcomes)
  }

  /** A decision may be logged, and this contains identities. */
  toJSON(): undefined {
    return undefined
  }

  #learn(known: readonly Decision[]): void {
    this.decisions = known
  }
}

/**
 * Decides the checks of one request.
 * @param request the request, if other calls decide it too: they share one deadline
 */
export type Decide = (
  op: DecidingOp,
  checks: readonly Check[],
  request?: object,
) => MaybePromise<Decision>

/** Answers requests or some of their checks, and passes the others to the next decider. */
export type Decider = (next: Decide) => Decide
