import {
  andThen,
  type CheckLimiter,
  invalid,
  type MaybePromise,
  type Policy,
  quote,
  SluiceError,
  wholeNumber,
} from '@sluice/core'
import { algorithmOf } from '@sluice/core/backend'
import type { BoundPolicy, PolicyCheck } from '../options/bound-policy.ts'
import type { PolicySettlement } from '../options/settlement.ts'
import type { Hold } from '../request/passage.ts'
import { caught, inOrder, type Report } from '../request/user-functions.ts'
import type { Found } from './found.ts'

/** The part that all accounts of one guard share. */
export interface AccountSetup<Native> {
  readonly limiter: CheckLimiter
  readonly policies: readonly BoundPolicy<Native>[]
  readonly report: Report
}

/** The units of one request, settled when its response ends. Later units are charged at once. */
export class RequestAccount<Native extends object> implements Hold {
  readonly #setup: AccountSetup<Native>
  readonly #found: Found<Native>
  readonly #late = new Map<PolicyCheck<Native>, number>()
  /** Known when the response ends. */
  #refunded: readonly BoundPolicy<Native>[] | undefined
  #isHeld = false
  #isOver = false

  constructor(setup: AccountSetup<Native>, found: Found<Native>) {
    this.#setup = setup
    this.#found = found
  }

  charge(units: number, policyName: string | undefined): void {
    const place = { option: 'the units of charge()', code: 'SLUICE_COST_INVALID' } as const
    wholeNumber(units, place, { min: 0 })
    if (policyName !== undefined) this.#checkName(policyName)
    if (units === 0) return
    const isMeant = ({ policy }: PolicyCheck<Native>) =>
      policyName === undefined ? hasUnits(policy) : policy.name === policyName
    for (const check of this.#found.checks.filter(isMeant)) {
      const sum = (this.#late.get(check) ?? 0) + units
      this.#late.set(check, Math.min(sum, Number.MAX_SAFE_INTEGER))
    }
    if (this.#refunded) this.#chargeLate()
    else if (!this.#isHeld) this.#found.context.settleAtEnd(this.held())
  }

  /** Returns the hold that the caller must settle when the response ends. */
  held(): Hold {
    this.#isHeld = true
    return this
  }

  finish(status: number): unknown {
    return this.#end(() => this.#refundedBy(status))
  }

  /** Charges a client that disconnects early: otherwise password guesses would be free. */
  abort(): unknown {
    return this.#end(() => [])
  }

  #end(refunded: () => MaybePromise<readonly BoundPolicy<Native>[]>): unknown {
    if (this.#isOver) return undefined
    this.#isOver = true
    const { mayGiveBack } = this.#found
    return andThen(refunded(), (due) => {
      if (due.length === 0 || !mayGiveBack) return this.#close(due)
      return andThen(mayGiveBack(), (may) => this.#close(may ? due : []))
    })
  }

  #close(refunded: readonly BoundPolicy<Native>[]): Promise<unknown> {
    this.#refunded = refunded
    const { decision } = this.#found
    const policies = refunded.map(({ policy }) => policy)
    const work = policies.length > 0 && this.#setup.limiter.refund(decision, { policies })
    return Promise.all([work, this.#chargeLate()])
  }

  /**
   * Late units are free for refunded requests, and for shadow policies that would have denied the
   * request.
   */
  #chargeLate(): unknown {
    const { shadow } = this.#found.decision
    const denied = shadow?.outcomes.filter(({ allowed }) => !allowed) ?? []
    const checks = [...this.#late]
      .filter(([{ bound }]) => !this.#refunded?.includes(bound))
      .filter(([{ policy }]) => !denied.some((outcome) => outcome.policy.id === policy.id))
      .map(([check, cost]) => ({ ...check, cost }))
    this.#late.clear()
    return checks.length > 0 && this.#setup.limiter.chargeChecks(checks)
  }

  /** Never throws or rejects: no caller is left to handle an error. */
  #refundedBy(status: number): MaybePromise<readonly BoundPolicy<Native>[]> {
    const { decision, checks } = this.#found
    const policies = decision.allowed ? checks.map(({ bound }) => bound) : []
    const concerned = policies.filter(({ settlement }) => settlement !== undefined)
    const functions = [...new Set(concerned.map(({ settlement }) => settlement?.ask))]
    const answers = inOrder(functions, (ask) => {
      const settlement = concerned.find((bound) => bound.settlement?.ask === ask)?.settlement
      return settlement && this.#answerOf(settlement, status)
    })
    return andThen(answers, (known) =>
      concerned.filter(
        ({ settlement }) => known[functions.indexOf(settlement?.ask)] === settlement?.refundsOn,
      ),
    )
  }

  /** Calls a user function. Without a boolean result, reports that and keeps the charge. */
  #answerOf(
    { option, ask }: PolicySettlement<Native>,
    status: number,
  ): MaybePromise<boolean | undefined> {
    const { report } = this.#setup
    const { native } = this.#found.context
    const keep = (how: string): undefined => {
      const detail = `it must return true or false, but it ${how}; the charge was kept`
      report('SLUICE_ANSWER_INVALID', option, detail)
    }
    const threw = (error: unknown): undefined =>
      keep(`threw ${error instanceof Error ? `a ${error.name}` : quote(error)}`)
    const accept = (answer: unknown): boolean | undefined =>
      typeof answer === 'boolean' ? answer : keep(`returned ${quote(answer)}`)
    return caught(() => andThen(ask(native, { status }), accept), threw)
  }

  #checkName(name: string): void {
    const { policies } = this.#setup
    const policy = policies.find((bound) => bound.policy.name === name)?.policy
    if (!policy) {
      const known = policies.map((bound) => bound.policy.name).join(', ')
      throw new SluiceError(
        'SLUICE_POLICY_UNKNOWN',
        `charge() names ${quote(name)}, but this limiter has no such policy; it has ${known}`,
      )
    }
    if (hasUnits(policy)) return
    const legal =
      'the name of a policy with units to charge: not a penalty, and not one that counts requests in flight'
    throw invalid({ option: 'the policy of charge()' }, name, legal)
  }
}

/** Leases end, and penalties count denials: neither has units to charge. */
function hasUnits(policy: Policy): boolean {
  return algorithmOf(policy).counts === 'units'
}

export function mayRefund<Native extends object>({ decision, checks }: Found<Native>): boolean {
  if (!decision.allowed || decision.source === 'open') return false
  return checks.some(({ bound }) => bound.settlement !== undefined)
}

/** Gives back all that a request took, unless a retry has used it. No caller waits for this. */
export function giveBack<Native extends object>(
  { decision, budgets, mayGiveBack = () => true }: Found<Native>,
  limiter: CheckLimiter,
): void {
  void budgets?.abort()
  void andThen(mayGiveBack(), (may) => may && limiter.refund(decision))
}
