import { andThen, type Decision, divideChecks, type MaybePromise } from '@sluice/core'
import { giveBack, mayRefund, RequestAccount } from '../lifecycle/account.ts'
import { ChargeableDecision } from '../lifecycle/chargeable-decision.ts'
import type { Decided } from '../lifecycle/decided.ts'
import type { DelayQueue } from '../lifecycle/delay-queue.ts'
import { LeaseRenewer } from '../lifecycle/lease-renewer.ts'
import { mayBeInShadow, type PolicyCheck } from '../options/bound-policy.ts'
import type { PolicyGuardOptions } from '../options/options.ts'
import { strikeDue } from '../options/penalty.ts'
import type { RequestContext } from '../request/context.ts'
import { allHolds, type Hold } from '../request/hold.ts'
import { type Passage, passWithoutFields, type RequestDecision } from '../request/passage.ts'
import type { ResponseField } from '../request/response.ts'
import {
  blocked,
  forbidden,
  refusalBody,
  refusalCause,
  refusalStatus,
  turnedAway,
} from '../responses/refusal.ts'
import {
  type RenderOptions,
  type ResponseFields,
  retryAfter,
} from '../responses/response-fields.ts'
import type { GuardSetup } from './setup.ts'

/** The last stage of a guard: tells observers of a decision, and makes the passage of it. */
export class Responder<Native extends object, Handler> {
  readonly #setup: GuardSetup<Native>
  readonly #options: PolicyGuardOptions<Native, Handler>
  readonly #delayQueue: DelayQueue
  readonly #leases: LeaseRenewer | undefined
  readonly #mayHaveShadows: boolean
  readonly #hasRefunds: boolean

  constructor(
    setup: GuardSetup<Native>,
    options: PolicyGuardOptions<Native, Handler>,
    delayQueue: DelayQueue,
  ) {
    this.#setup = setup
    this.#options = options
    this.#delayQueue = delayQueue
    const policies = setup.policies.map(({ policy }) => policy)
    this.#leases = LeaseRenewer.of(setup.limiter, policies)
    this.#mayHaveShadows = setup.policies.some(mayBeInShadow)
    this.#hasRefunds = setup.policies.some(({ settlement }) => settlement !== undefined)
  }

  /** Tells observers of a decision, and answers it. */
  respond(decided: Decided<Native>): MaybePromise<Passage<Handler>> {
    if (this.#isTurnedAway(decided)) return this.#turnAway(decided)
    this.observe(decided)
    return this.#passageOf(decided)
  }

  /** Tells observers of a decision: once for each request. */
  observe(decided: Decided<Native>, isQueued = false): void {
    this.#setup.observation.notifyDecision(decided, isQueued)
  }

  /** Refuses a request that a list blocks. */
  forbid(context: RequestContext<Native>): MaybePromise<Passage<Handler>> {
    this.observe({ context, decision: blocked, checks: [] })
    return forbidden(this.#options, context.native)
  }

  /** Settles everything that a request holds when its response ends, whatever code answers it. */
  settleAtEnd(charged: Decided<Native>): void {
    const hold = this.#hold(charged.decision, this.#accountOf(charged))
    if (hold) charged.context.settleAtEnd(hold)
  }

  /** The decision and the fields of a request that another part answers without a refusal. */
  fieldsFor(decided: Decided<Native>): {
    readonly decision: RequestDecision
    readonly fields: readonly ResponseField[]
  } {
    const { context, checks } = decided
    const decision = new ChargeableDecision(this.#setup, decided, undefined)
    if (decision.outcomes.length === 0) return { decision, fields: [] }
    const fields = this.#fieldsOf(decision, this.#enforced(checks))
    const options = { ...this.#renderOptions(decision), rejected: false, retryAfter: undefined }
    return { decision, fields: fields.render(context.response, options) }
  }

  #passageOf(decided: Decided<Native>): MaybePromise<Passage<Handler>> {
    const { context } = decided
    const account = this.#accountOf(decided)
    const decision = new ChargeableDecision(this.#setup, decided, account)
    if (decision.source === 'open') return { ...passWithoutFields, decision }
    const checks = this.#enforced(decided.checks)
    if (checks.length === 0 && decision.allowed) {
      return { ...passWithoutFields, decision, hold: this.#hold(decision, account) }
    }
    const fields = this.#fieldsOf(decision, checks)
    if (!decision.allowed) return this.#refuse(context, { decision, checks, fields })
    const set = fields.render(context.response, this.#renderOptions(decision))
    return decision.delayMs === 0
      ? {
          decision,
          verdict: { action: 'pass', fields: set },
          hold: this.#hold(decision, account),
        }
      : this.#delay(decision, account, set)
  }

  #delay(
    decision: RequestDecision,
    account: RequestAccount<Native> | undefined,
    fields: readonly ResponseField[],
  ): Passage<Handler> {
    // No policy that queues stands beside one with leases, so there are none to renew.
    const delayed = this.#delayQueue.add(decision.delayMs)
    const verdict = { action: 'delay', fields, turn: delayed.turn } as const
    return { decision, verdict, hold: allHolds(delayed, account?.held()) }
  }

  #refuse(
    { native, response }: RequestContext<Native>,
    { decision, checks, fields }: Refused<Native>,
  ): MaybePromise<Passage<Handler>> {
    const { limiter, penalty, statusCode } = this.#setup
    const { message, handler } = this.#options
    const cause = refusalCause(decision, checks)
    if (cause === 'quota' && penalty) {
      const strike = strikeDue(decision, checks, penalty)
      if (strike) limiter.strike(strike, checks)
    }
    const status = refusalStatus(cause, statusCode)
    const violated = fields.policies.violated()
    const penalties = fields.policies.violatedPenalties()
    const refusal = { native, decision, cause, status, violated, penalties }
    const body = handler ? undefined : refusalBody(message, refusal)
    return andThen(body, (known) => ({
      decision,
      verdict: {
        action: 'reject',
        status,
        fields: [
          ...fields.render(response, this.#renderOptions(decision)),
          ['Cache-Control', 'no-store'],
        ],
        body: known,
        handler,
      },
      hold: undefined,
    }))
  }

  #isTurnedAway({ decision }: Decided<Native>): boolean {
    return decision.delayMs > 0 && this.#delayQueue.isFull
  }

  /** Refuses an allowed request that there is no room to hold. A refusal is never charged. */
  #turnAway(decided: Decided<Native>): MaybePromise<Passage<Handler>> {
    giveBack(decided, this.#setup.limiter)
    const decision = turnedAway(decided.decision)
    // The client is told 'closed', observers 'shed': it is a lack of room, and no store failed.
    this.observe({ ...decided, decision: { ...decision, source: 'shed' } })
    return this.#passageOf({ ...decided, decision, checks: [] })
  }

  #fieldsOf(
    decision: ChargeableDecision<Native>,
    checks: readonly PolicyCheck<Native>[],
  ): ResponseFields {
    const { headers, hideOnRedirect } = this.#setup
    const fields = decision.responseFields
    fields.policies.add({ decision, checks, dialects: headers })
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

  #accountOf(decided: Decided<Native>): RequestAccount<Native> | undefined {
    return this.#hasRefunds && mayRefund(decided)
      ? new RequestAccount(this.#setup, decided)
      : undefined
  }

  #hold(decision: Decision, account: RequestAccount<Native> | undefined): Hold | undefined {
    const lease = this.#leases?.keep(decision)
    return account ? allHolds(lease, account.held()) : lease
  }
}

interface Refused<Native> {
  readonly decision: RequestDecision
  readonly checks: readonly PolicyCheck<Native>[]
  readonly fields: ResponseFields
}
