import {
  andThen,
  type CheckLimiter,
  type Decision,
  divideChecks,
  isPromise,
  type MaybePromise,
} from '@sluice/core'
import { giveBack } from '../lifecycle/account.ts'
import type { Decided } from '../lifecycle/decided.ts'
import type { Admission, Taken } from '../options/admission.ts'
import type { RequestContext } from '../request/context.ts'
import { type Answer, type Passage, passWithoutFields, refuseUnasked } from '../request/passage.ts'
import { fieldLines, type HttpResponse, type ResponseField } from '../request/response.ts'
import type { Responder } from './responder.ts'

/** The stage of a guard in which its admission takes requests. */
export class Admitting<Native extends object, Handler> {
  readonly #admission: Admission<Native>
  readonly #limiter: CheckLimiter
  readonly #responder: Responder<Native, Handler>

  constructor(
    admission: Admission<Native>,
    limiter: CheckLimiter,
    responder: Responder<Native, Handler>,
  ) {
    this.#admission = admission
    this.#limiter = limiter
    this.#responder = responder
  }

  /** Lets the admission take a request, or else answers it as without admission. */
  admitOrRespond(decided: Decided<Native>): MaybePromise<Passage<Handler>> {
    const { context, decision } = decided.found
    return andThen(this.#orReleased(decided), (takes) => {
      if (takes === false) {
        const passage = this.#responder.respond(decided)
        return andThen(passage, (known) => this.#varying(known, context))
      }
      if (!decision.allowed) {
        return takes === true ? this.#overflow(decided) : this.#takenBefore(takes, decided)
      }
      this.#responder.settleAtEnd(decided)
      return andThen(takes === true ? this.#takeOrTell(decided) : takes, (known) => {
        this.#responder.observe(decided.found, known.isNew || known.isKnown)
        return this.#answered(known, decided, decided)
      })
    })
  }

  /** Lets the admission take a request without limits: a queued route may have no handler. */
  admitUnlimited(context: RequestContext<Native>): MaybePromise<Passage<Handler>> {
    return andThen(this.#admission.takes(context, undefined), (takes) => {
      if (takes === false) return this.#varying(passWithoutFields, context)
      const answer = takes === true ? this.#admission.take(context) : takes
      return andThen(answer, (known) => ({
        decision: undefined,
        verdict: verdictOf(known, [], context),
        hold: undefined,
      }))
    })
  }

  /**
   * Releases what a request holds if the admission fails. If it is unknown whether a request is
   * taken, no passage results, so nothing else gives back the units that it holds.
   */
  #orReleased(decided: Decided<Native>): ReturnType<Admission<Native>['takes']> {
    const { context, decision } = decided.found
    try {
      const takes = this.#admission.takes(context, decision)
      if (!isPromise(takes)) return takes
      return takes.catch(async (error: unknown) => {
        this.#responder.observe(decided.found)
        await this.#limiter.release(decision)
        throw error
      })
    } catch (error) {
      this.#responder.observe(decided.found)
      void this.#limiter.release(decision)
      throw error
    }
  }

  /**
   * Lets the admission take a request that is denied, if the limits allow that which are no reason
   * to take it. One that is wrong, or was taken before, is refused: it would cost its client
   * nothing.
   */
  async #overflow(decided: Decided<Native>): Promise<Passage<Handler>> {
    const charged = await this.#charge(decided)
    if (!charged.allowed) return this.#responder.respond(decided)
    this.#responder.settleAtEnd(charged)
    const answer = await this.#takeOrTell(charged)
    const { fullForMs = 0, isNew, givesBack } = answer
    if (isNew || (givesBack && fullForMs === 0)) {
      this.#responder.observe(charged.found, isNew)
      return this.#answered(answer, decided, charged)
    }
    giveBack(charged.found, this.#limiter)
    return this.#responder.respond(
      decided.with({ decision: later(decided.found.decision, fullForMs) }),
    )
  }

  /** Answers a request that was taken before, and is over a limit now: this is no denial. */
  #takenBefore(answer: Taken, decided: Decided<Native>): Passage<Handler> {
    const decision = { ...refuseUnasked(decided.source, 0), allowed: true }
    this.#responder.observe({ ...decided.found, checks: [], decision }, true)
    return this.#answered(answer, decided, decided)
  }

  /** Has the admission take a request. If that fails, observers receive the decision alone. */
  async #takeOrTell(decided: Decided<Native>): Promise<Taken> {
    try {
      return await this.#admission.take(decided.found.context)
    } catch (error) {
      this.#responder.observe(decided.found)
      throw error
    }
  }

  #answered(answer: Taken, decided: Decided<Native>, charged: Decided<Native>): Passage<Handler> {
    if (answer.givesBack) giveBack(charged.found, this.#limiter)
    const fields = this.#responder.fieldsFor(decided)
    const verdict = verdictOf(answer, fields, decided.found.context)
    return { decision: decided, verdict, hold: undefined }
  }

  /** Charges the policies that allow a denied request, which has taken nothing so far. */
  #charge(decided: Decided<Native>): MaybePromise<Decided<Native>> {
    const { checks: asked, context } = decided.found
    const { enforced } = divideChecks(asked)
    const checks = enforced.filter((_check, index) => decided.outcomes[index]?.allowed)
    return andThen(this.#limiter.decide(checks, context.native), (decision) =>
      decided.with({ checks, decision }),
    )
  }

  #varying(
    passage: Passage<Handler>,
    { request, response }: RequestContext<Native>,
  ): Passage<Handler> {
    if (!this.#admission.varies(request)) return passage
    const { verdict } = passage
    const fields = [...verdict.fields, varyOnPrefer(response)]
    return { ...passage, verdict: { ...verdict, fields } }
  }
}

function verdictOf(
  { status, fields, body }: Taken,
  limitFields: readonly ResponseField[],
  { response }: Pick<RequestContext<object>, 'response'>,
): Answer {
  const vary = varyOnPrefer(response)
  return { action: 'answer', status, fields: [...limitFields, ...fields, vary], body }
}

/** Neither before the limits would let it pass, nor before there is room. */
function later(decision: Decision, fullForMs: number): Decision {
  return { ...decision, retryAfterMs: Math.max(decision.retryAfterMs, fullForMs) }
}

/** `Vary` with `Prefer` in it, beside what others have put there (RFC 7240 §2). */
function varyOnPrefer(response: HttpResponse): ResponseField {
  const names = fieldLines(response, 'Vary')
    .join(',')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
  const isThere = names.some((name) => name === '*' || name.toLowerCase() === 'prefer')
  return ['Vary', (isThere ? names : [...names, 'Prefer']).join(', ')]
}
