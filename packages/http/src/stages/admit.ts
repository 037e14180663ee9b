import { andThen, type CheckLimiter, divideChecks, type MaybePromise } from '@sluice/core'
import { giveBack } from '../lifecycle/account.ts'
import type { Decided } from '../lifecycle/decided.ts'
import type { Admission, Taken } from '../options/admission.ts'
import type { RequestContext } from '../request/context.ts'
import { fieldLines, type HttpResponse, type ResponseField } from '../request/exchange.ts'
import { type Answer, type Passage, passWithoutFields, refuseUnasked } from '../request/passage.ts'
import { caught } from '../request/user-functions.ts'
import type { Responder } from './responder.ts'

/** The stage of a guard in which its admission accepts requests. */
export interface Admitting<Native extends object, Handler> {
  /** Lets the admission accept a request, or answers it as without admission. */
  admitOrRespond(decided: Decided<Native>): MaybePromise<Passage<Handler>>
  /** Lets the admission accept an unlimited request: a queued route may have no handler. */
  admitUnlimited(context: RequestContext<Native>): MaybePromise<Passage<Handler>>
}

export function createAdmitting<Native extends object, Handler>(
  admission: Admission<Native>,
  limiter: CheckLimiter,
  responder: Responder<Native, Handler>,
): Admitting<Native, Handler> {
  /**
   * Calls the admission. If that fails, releases what the request holds: without a passage nothing
   * else would give its units back.
   */
  function takesOrReleased({ found }: Decided<Native>): ReturnType<Admission<Native>['takes']> {
    const { context, decision } = found
    return caught(
      () => admission.takes(context, decision),
      async (error) => {
        responder.observe(found)
        await limiter.release(decision)
        throw error
      },
    )
  }

  /**
   * Lets the admission accept a denied request, unless limits that admission cannot exceed deny it
   * too. A request that is invalid or was accepted before is refused, since it would otherwise be
   * free.
   */
  async function overflow(decided: Decided<Native>): Promise<Passage<Handler>> {
    const charged = await charge(decided)
    if (!charged.allowed) return responder.respond(decided)
    responder.settleAtEnd(charged)
    const answer = await takeOrTell(charged)
    const { fullForMs = 0, isNew, givesBack } = answer
    if (isNew || (givesBack && fullForMs === 0)) {
      responder.observe(charged.found, isNew)
      return answered(answer, decided, charged)
    }
    giveBack(charged.found, limiter)
    // Not before the limits would let it pass, and not before there is room.
    const retryAfterMs = Math.max(decided.retryAfterMs, fullForMs)
    const decision = { ...decided.found.decision, retryAfterMs }
    return responder.respond(decided.with({ decision }))
  }

  /** Charges the policies that allow a denied request, which has taken nothing yet. */
  function charge(decided: Decided<Native>): MaybePromise<Decided<Native>> {
    const { checks: asked, context } = decided.found
    const { enforced } = divideChecks(asked)
    const checks = enforced.filter((_check, index) => decided.outcomes[index]?.allowed)
    return andThen(limiter.decide(checks, context.native), (decision) =>
      decided.with({ checks, decision }),
    )
  }

  /** Answers a request that was accepted before and is over a limit now, which is not a denial. */
  function takenBefore(answer: Taken, decided: Decided<Native>): Passage<Handler> {
    const decision = { ...refuseUnasked(decided.source, 0), allowed: true }
    responder.observe({ ...decided.found, checks: [], decision }, true)
    return answered(answer, decided)
  }

  /** Makes the admission accept a request. If that fails, observers receive only the decision. */
  async function takeOrTell({ found }: Decided<Native>): Promise<Taken> {
    try {
      return await admission.take(found.context)
    } catch (error) {
      responder.observe(found)
      throw error
    }
  }

  function answered(
    answer: Taken,
    decided: Decided<Native>,
    charged: Decided<Native> = decided,
  ): Passage<Handler> {
    if (answer.givesBack) giveBack(charged.found, limiter)
    const verdict = verdictOf(answer, responder.fieldsFor(decided), decided.found.context)
    return { decision: decided, verdict, hold: undefined }
  }

  function varying(passage: Passage<Handler>, context: RequestContext<Native>): Passage<Handler> {
    if (!admission.varies(context.request)) return passage
    const { verdict } = passage
    const fields = [...verdict.fields, varyOnPrefer(context.response)]
    return { ...passage, verdict: { ...verdict, fields } }
  }

  return {
    admitOrRespond(decided) {
      const { context } = decided.found
      return andThen(takesOrReleased(decided), (takes) => {
        if (takes === false) {
          return andThen(responder.respond(decided), (known) => varying(known, context))
        }
        if (!decided.allowed) {
          return takes === true ? overflow(decided) : takenBefore(takes, decided)
        }
        responder.settleAtEnd(decided)
        return andThen(takes === true ? takeOrTell(decided) : takes, (known) => {
          responder.observe(decided.found, known.isNew || known.isKnown)
          return answered(known, decided)
        })
      })
    },
    admitUnlimited: (context) =>
      andThen(admission.takes(context, undefined), (takes) => {
        if (takes === false) return varying(passWithoutFields, context)
        const answer = takes === true ? admission.take(context) : takes
        return andThen(answer, (known) => {
          return { decision: undefined, verdict: verdictOf(known, [], context), hold: undefined }
        })
      }),
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

/** Returns `Vary` with `Prefer` added to existing values (RFC 7240 §2). */
function varyOnPrefer(response: HttpResponse): ResponseField {
  const names = fieldLines(response, 'Vary')
    .join(',')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
  const isThere = names.some((name) => name === '*' || name.toLowerCase() === 'prefer')
  return ['Vary', (isThere ? names : [...names, 'Prefer']).join(', ')]
}
