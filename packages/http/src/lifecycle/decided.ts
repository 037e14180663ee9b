import {
  bindingIndex,
  type Decision,
  type DecisionSource,
  type DecisionTiming,
  divideChecks,
  type Outcome,
  type Policy,
  type Reservation,
} from '@sluice/core'
import type { PolicyCheck } from '../options/bound-policy.ts'
import type { RequestContext } from '../request/context.ts'
import type { RequestDecision } from '../request/passage.ts'
import { noBudget } from '../responses/refusal.ts'
import { fieldsKey, type ResponseFields, responseFields } from '../responses/response-fields.ts'
import { type AccountSetup, type Found, RequestAccount } from './account.ts'

/**
 * One request as it was decided, through all later stages, and for the application. Own properties
 * are those that loggers shall print.
 */
export class Decided<Native extends object> implements RequestDecision, Found<Native> {
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
  readonly #timing: DecisionTiming | undefined
  readonly #fields: ResponseFields
  #account: RequestAccount<Native> | undefined

  constructor(setup: AccountSetup<Native>, found: Found<Native>, timing?: DecisionTiming) {
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
    this.#timing = timing
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

  /** The same request with another decision, or with other checks. */
  with(changes: Partial<Pick<Found<Native>, 'decision' | 'checks'>>): Decided<Native> {
    const { context, decision, checks, mayGiveBack, budgets } = this.#found
    const found = { context, decision, checks, mayGiveBack, budgets, ...changes }
    return new Decided(this.#setup, found, this.#timing)
  }

  get context(): RequestContext<Native> {
    return this.#found.context
  }

  get decision(): Decision {
    return this.#found.decision
  }

  get checks(): readonly PolicyCheck<Native>[] {
    return this.#found.checks
  }

  get mayGiveBack(): Found<Native>['mayGiveBack'] {
    return this.#found.mayGiveBack
  }

  get budgets(): Found<Native>['budgets'] {
    return this.#found.budgets
  }

  get timing(): DecisionTiming | undefined {
    return this.#timing
  }

  /** The fields of its response. */
  get responseFields(): ResponseFields {
    return this.#fields
  }

  /** Made when it is needed: requests without a charge pay almost nothing. */
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
    const { enforced } = divideChecks(this.checks)
    return enforced[bindingIndex(this.outcomes, enforced)]
  }

  charge(units: number, policy?: string): void {
    this.account.charge(units, policy)
  }

  budget(policy?: string): Reservation {
    return this.budgets?.of(policy) ?? noBudget()
  }

  spend(units = 1, policy?: string): boolean {
    return this.budget(policy).spend(units)
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
  return decision instanceof Decided ? decision.checks : []
}
