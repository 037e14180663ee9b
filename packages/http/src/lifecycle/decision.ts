import {
  bindingIndex,
  type Decision,
  type DecisionSource,
  divideChecks,
  type Outcome,
  type Policy,
} from '@sluice/core'
import type { RuleCheck } from '../guard/bound-policy.ts'
import { type AccountPlace, type Decided, RequestAccount } from './account.ts'

/** The decision on an HTTP request, with what its handler may add to it. */
export interface RequestDecision extends Decision {
  /** The policy that denies for the longest; where none denies, the one with the fewest units left; `undefined` where none was asked. */
  readonly policy: Policy | undefined
  /** The key that `policy` counted, as its resolver found it; `JSON.stringify` leaves it out. Redact it before it reaches a log. */
  readonly key: string | undefined
  /**
   * Adds units that are known only now (bytes, rows, tokens) to what the request took: all calls of a request are charged at once, when its
   * response is over, also if its client leaves. Nothing is refused for them; what is too much is missing to the next request.
   * @param units a whole number ≥ 0
   * @param policy the name of the policy to charge @default all policies of the limiter but those that count requests in flight
   * @throws SluiceError when `units` is no such number, or the limiter has no such policy
   */
  charge(units: number, policy?: string): void
  /**
   * Forgets all that the identities of this request have taken of these policies, and lifts their blocks: after a login that was right, say.
   * What this request took is forgotten too, so nothing of it is given back later. Rejects when the store failed.
   * @returns whether anything was there
   */
  reset(): Promise<boolean>
}

/**
 * A decision that knows its request. Where nothing can be given back the account is opened by the first charge, so that requests without
 * one pay next to nothing for it.
 */
export class ChargeableDecision<Native extends object> implements RequestDecision {
  readonly allowed: boolean
  readonly outcomes: readonly Outcome[]
  readonly retryAfterMs: number
  readonly delayMs: number
  readonly source: DecisionSource
  readonly shadow: Decision['shadow']
  readonly #place: AccountPlace<Native>
  readonly #request: Decided<Native>
  #account: RequestAccount<Native> | undefined

  constructor(
    place: AccountPlace<Native>,
    request: Decided<Native>,
    account: RequestAccount<Native> | undefined,
  ) {
    const { decision } = request
    this.allowed = decision.allowed
    this.outcomes = decision.outcomes
    this.retryAfterMs = decision.retryAfterMs
    this.delayMs = decision.delayMs
    this.source = decision.source
    this.shadow = decision.shadow
    this.#place = place
    this.#request = request
    this.#account = account
  }

  get policy(): Policy | undefined {
    return this.#binding?.policy
  }

  get key(): string | undefined {
    return this.#binding?.identity
  }

  get #binding(): RuleCheck<Native> | undefined {
    return divideChecks(this.#request.checks).enforced[bindingIndex(this.outcomes)]
  }

  charge(units: number, policy?: string): void {
    this.#account ??= new RequestAccount(this.#place, this.#request)
    this.#account.charge(units, policy)
  }

  async reset(): Promise<boolean> {
    const { checks } = this.#request
    // A penalty may have been asked in a form that counts no strikes.
    return this.#place.limiter.resetChecks(
      checks.map((check) => ({ ...check, policy: check.rule.policy })),
    )
  }
}
