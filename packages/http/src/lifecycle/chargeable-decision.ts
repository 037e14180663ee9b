import {
  bindingIndex,
  type Decision,
  type DecisionSource,
  divideChecks,
  type Outcome,
  type Policy,
} from '@sluice/core'
import type { PolicyCheck } from '../options/bound-policy.ts'
import type { RequestDecision } from '../request/passage.ts'
import { fieldsKey, type ResponseFields, responseFields } from '../responses/response-fields.ts'
import { type AccountSetup, RequestAccount } from './account.ts'
import type { Decided } from './decided.ts'

/**
 * A decision that knows its request. If nothing can be given back, the first charge opens the
 * account, so that requests without a charge pay almost nothing.
 */
export class ChargeableDecision<Native extends object> implements RequestDecision {
  readonly allowed: boolean
  readonly limit: number | undefined
  readonly remaining: number | undefined
  readonly outcomes: readonly Outcome[]
  readonly retryAfterMs: number
  readonly delayMs: number
  readonly source: DecisionSource
  readonly shadow: Decision['shadow']
  readonly #setup: AccountSetup<Native>
  readonly #decided: Decided<Native>
  #account: RequestAccount<Native> | undefined
  readonly #fields: ResponseFields

  constructor(
    setup: AccountSetup<Native>,
    decided: Decided<Native>,
    account: RequestAccount<Native> | undefined,
  ) {
    const { context, decision } = decided
    this.allowed = decision.allowed
    this.limit = decision.limit
    this.remaining = decision.remaining
    this.outcomes = decision.outcomes
    this.retryAfterMs = decision.retryAfterMs
    this.delayMs = decision.delayMs
    this.source = decision.source
    this.shadow = decision.shadow
    this.#setup = setup
    this.#decided = decided
    this.#account = account
    this.#fields = responseFields(context)
  }

  /** The fields of its response. An accessor, since loggers print own properties. */
  get responseFields(): ResponseFields {
    return this.#fields
  }

  static {
    // Under the symbol, so that another loaded copy of @sluice/http finds it.
    Object.defineProperty(ChargeableDecision.prototype, fieldsKey, {
      get(this: ChargeableDecision<object>) {
        return this.#fields
      },
    })
  }

  /** All that was asked, policies in shadow too. */
  get checks(): readonly PolicyCheck<Native>[] {
    return this.#decided.checks
  }

  get policy(): Policy | undefined {
    return this.#binding?.policy
  }

  get key(): string | undefined {
    return this.#binding?.identity
  }

  get #binding(): PolicyCheck<Native> | undefined {
    const { enforced } = divideChecks(this.checks)
    return enforced[bindingIndex(this.outcomes, enforced)]
  }

  charge(units: number, policy?: string): void {
    this.#account ??= new RequestAccount(this.#setup, this.#decided)
    this.#account.charge(units, policy)
  }

  async reset(): Promise<boolean> {
    // A penalty may have been asked in a form that counts no strikes.
    return this.#setup.limiter.resetChecks(
      this.checks.map((check) => ({ ...check, policy: check.bound.policy })),
    )
  }
}

/** The checks that were asked for a decision, those of policies in shadow too. */
export function checksOf(decision: RequestDecision): readonly PolicyCheck<object>[] {
  return decision instanceof ChargeableDecision ? decision.checks : []
}
