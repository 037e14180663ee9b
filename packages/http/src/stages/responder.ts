import { type Decision, divideChecks, type MaybePromise } from '@sluice/core'
import { giveBack, mayRefund } from '../lifecycle/account.ts'
import type { Decided } from '../lifecycle/decided.ts'
import type { DelayQueue } from '../lifecycle/delay-queue.ts'
import type { Found } from '../lifecycle/found.ts'
import { leaseKeeper } from '../lifecycle/lease-renewer.ts'
import { mayBeInShadow, type PolicyCheck } from '../options/bound-policy.ts'
import { strikeDue } from '../options/penalty.ts'
import type { RequestContext } from '../request/context.ts'
import type { ResponseField } from '../request/exchange.ts'
import {
  allHolds,
  type Hold,
  type Passage,
  passWithoutFields,
  refuseUnasked,
} from '../request/passage.ts'
import { blocked, forbidden, refusalCause, rejection } from '../responses/refusal.ts'
import {
  type RenderOptions,
  type ResponseFields,
  retryAfter,
} from '../responses/response-fields.ts'
import type { GuardSetup } from './setup.ts'

/** The last stage of a guard: reports a decision to observers and turns it into a passage. */
export class Responder<Native extends object, Handler> {
  readonly #setup: GuardSetup<Native, Handler>
  readonly #delayQueue: DelayQueue
  readonly #leases: ReturnType<typeof leaseKeeper>
  readonly #mayHaveShadows: boolean
  readonly #hasRefunds: boolean

  constructor(setup: GuardSetup<Native, Handler>, delayQueue: DelayQueue) {
    this.#setup = setup
    this.#delayQueue = delayQueue
    const policies = setup.policies.map(({ policy }) => policy)
    this.#leases = leaseKeeper(setup.limiter, policies)
    this.#mayHaveShadows = setup.policies.some(mayBeInShadow)
    this.#hasRefunds = setup.policies.some(({ settlement }) => settlement !== undefined)
  }

  respond(decided: Decided<Native>): MaybePromise<Passage<Handler>> {
    if (decided.delayMs > 0 && this.#delayQueue.isFull) return this.#turnAway(decided)
    this.observe(decided.found)
    return this.#passageOf(decided)
  }

  /** Reports a decision to observers, once per request. */
  observe(found: Found<Native>, isQueued = false): void {
    this.#setup.observation.notifyDecision(found, isQueued)
  }

  forbid(context: RequestContext<Native>): MaybePromise<Passage<Handler>> {
    this.observe({ context, decision: blocked, checks: [] })
    return forbidden(this.#setup, context.native)
  }

  /** Settles everything that a request holds when its response ends, whichever code answers it. */
  settleAtEnd(charged: Decided<Native>): void {
    const hold = this.#hold(charged)
    if (hold) charged.found.context.settleAtEnd(hold)
  }

  /** Returns the fields of a request that something else answers without refusing it. */
  fieldsFor(decided: Decided<Native>): readonly ResponseField[] {
    if (decided.outcomes.length === 0) return []
    const { checks, context } = decided.found
    const fields = this.#fieldsOf(decided, this.#enforced(checks))
    const options = { ...this.#renderOptions(decided), rejected: false, retryAfter: undefined }
    return fields.render(context.response, options)
  }

  #passageOf(decided: Decided<Native>): MaybePromise<Passage<Handler>> {
    const { checks: asked, context } = decided.found
    const checks = this.#enforced(asked)
    if (decided.source === 'open' || (checks.length === 0 && decided.allowed)) {
      return { ...passWithoutFields, decision: decided, hold: this.#hold(decided) }
    }
    const fields = this.#fieldsOf(decided, checks)
    if (!decided.allowed) return this.#refuse(decided, checks, fields)
    const set = fields.render(context.response, this.#renderOptions(decided))
    const hold = this.#hold(decided)
    if (decided.delayMs === 0) {
      return { decision: decided, verdict: { action: 'pass', fields: set }, hold }
    }
    const delayed = this.#delayQueue.add(decided.delayMs)
    const verdict = { action: 'delay', fields: set, turn: delayed.turn } as const
    return { decision: decided, verdict, hold: allHolds(delayed, hold) }
  }

  #refuse(
    decided: Decided<Native>,
    checks: readonly PolicyCheck<Native>[],
    fields: ResponseFields,
  ): MaybePromise<Passage<Handler>> {
    const { limiter, penalty, statusCode } = this.#setup
    const { native, response } = decided.found.context
    const cause = refusalCause(decided, checks)
    if (cause === 'quota' && penalty) {
      const strike = strikeDue(decided, checks, penalty)
      if (strike) limiter.strike(strike, checks)
    }
    // Failures, full queues and shed load are the server's problems.
    const status = cause === 'quota' ? statusCode : 503
    const refusal = { native, decision: decided, cause, status, ...fields.policies.violated() }
    return rejection(this.#setup, refusal, () =>
      fields.render(response, this.#renderOptions(decided)),
    )
  }

  /** Refuses an allowed request if there is no room to delay it. A refusal is never charged. */
  #turnAway(decided: Decided<Native>): MaybePromise<Passage<Handler>> {
    const { found, delayMs } = decided
    giveBack(found, this.#setup.limiter)
    // The client sees 'closed', observers 'shed': there is no room, but the store did not fail.
    this.observe({ ...found, decision: refuseUnasked('shed', delayMs) })
    return this.#passageOf(decided.with({ decision: refuseUnasked('closed', delayMs), checks: [] }))
  }

  #fieldsOf(decided: Decided<Native>, checks: readonly PolicyCheck<Native>[]): ResponseFields {
    const { headers, hideOnRedirect } = this.#setup
    const fields = decided.responseFields
    fields.policies.add({ decision: decided, checks, dialects: headers })
    if (hideOnRedirect) fields.hideOnRedirect = true
    return fields
  }

  #renderOptions(decision: Decision): RenderOptions {
    const { retryJitter, exposeHeaders } = this.#setup
    return {
      rejected: !decision.allowed,
      retryAfter: decision.allowed ? undefined : retryAfter(decision, retryJitter),
      nowMs: Date.now(),
      exposeHeaders,
    }
  }

  #enforced(checks: readonly PolicyCheck<Native>[]): readonly PolicyCheck<Native>[] {
    return this.#mayHaveShadows ? divideChecks(checks).enforced : checks
  }

  #hold(decided: Decided<Native>): Hold | undefined {
    const lease = this.#leases?.(decided)
    const { found } = decided
    const account = this.#hasRefunds && mayRefund(found) ? decided.account.held() : undefined
    return account || found.budgets ? allHolds(lease, account, found.budgets) : lease
  }
}
