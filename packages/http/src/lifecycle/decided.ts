import {
  bindingIndex,
  type Decision,
  type DecisionSource,
  divideChecks,
  type Outcome,
  type Policy,
  type Reservation,
} from '@sluice/core'
import type { PolicyCheck } from '../options/bound-policy.ts'
import type { RequestDecision } from '../request/passage.ts'
import { noBudget } from '../responses/refusal.ts'
import { fieldsKey, type ResponseFields, responseFields } from '../responses/response-fields.ts'
import { type AccountSetup, RequestAccount } from './account.ts'
import type { Found } from './found.ts'

/**
 * One decided request, for all later stages and for the application. Only properties that loggers
 * should print are own properties.
 */
export class Decided<Native extends object> implements RequestDecision {
  readonly allowed: boolean
  readonly limit: number | undefined
  readonly remaining: number | undefined
  readonly outcomes: readonly Outcome[]
  readonly retryAfterMs: number
  readonly delayMs: number
  readonly source: DecisionSource
  readonly shadow: Decision['shadow']
  readonly #setup: AccountSetup<Native>
  readonly #found: Found<Native>
  readonly #fields: ResponseFields
  #account: RequestAccount<Native> | undefined

  constructor(setup: AccountSetup<Native>, found: Found<Native>) {
    const { context, decision } = found
    this.allowed = decision.allowed
    this.limit = decision.limit
    this.remaining = decision.remaining
    this.outcomes = decision.outcomes
    this.retryAfterMs = decision.retryAfterMs
    this.delayMs = decision.delayMs
    this.source = decision.source
    this.shadow = decision.shadow
    this.#setup = setup
    this.#found = found
    this.#fields = responseFields(context)
  }

  static {
    // Under the symbol, so that another loaded copy of @sluice/http finds it.
    Object.defineProperty(Decided.prototype, fieldsKey, {
      get(this: Decided<object>) {
        return this.#fields
      },
    })
  }

  with(changes: Partial<Pick<Found<Native>, 'decision' | 'checks'>>): Decided<Native> {
    return new Decided(this.#setup, { ...this.#found, ...changes })
  }

  get found(): Found<Native> {
    return this.#found
  }

  get responseFields(): ResponseFields {
    return this.#fields
  }

  /** Created on demand: requests without a charge cost almost nothing. */
  get account(): RequestAccount<Native> {
    this.#account ??= new RequestAccount(this.#setup, this.#found)
    return this.#account
  }

  get policy(): Policy | undefined {
    return this.#binding?.policy
  }

  get key(): string | undefined {
    return this.#binding?.identity
  }

  get #binding(): PolicyCheck<Native> | undefined {
    const { enforced } = divideChecks(this.#found.checks)
    return enforced[bindingIndex(this.outcomes, enforced)]
  }

  charge(units: number, policy?: string): void {
    this.account.charge(units, policy)
  }

  budget(policy?: string): Reservation {
    return this.#found.budgets?.of(policy) ?? noBudget()
  }

  spend(units = 1, policy?: string): boolean {
    return this.budget(policy).spend(units)
  }

  async reset(): Promise<boolean> {
    // A penalty may have been checked in a form that counts no strikes.
    return this.#setup.limiter.resetChecks(
      this.#found.checks.map((check) => ({ ...check, policy: check.bound.policy })),
    )
  }
}

/** The checks behind a decision, including those of shadow policies. */
export function checksOf(decision: RequestDecision): readonly PolicyCheck<object>[] {
  return decision instanceof Decided ? decision.found.checks : []
}
