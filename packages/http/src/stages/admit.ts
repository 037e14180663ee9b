import {
  andThen,
  type Decision,
  divideChecks,
  isPromise,
  type Limiter,
  type MaybePromise,
} from '@sluice/core'
import { giveBack } from '../lifecycle/account.ts'
import type { Decided } from '../lifecycle/decided.ts'
import type { Admission, Taken } from '../options/admission.ts'
import type { PolicyCheck } from '../options/bound-policy.ts'
import type { RequestContext } from '../request/context.ts'
import type { Answer, Passage } from '../request/passage.ts'
import { fieldLines, type HttpResponse, type ResponseField } from '../request/response.ts'
import type { Responder } from './responder.ts'

/** The parts of a guard that an admission needs. */
export interface AdmissionSetup<Native extends object, Handler> {
  readonly admission: Admission<Native>
  readonly limiter: Limiter
  readonly responder: Responder<Native, Handler>
}

/** Lets the admission take a request, or else answers it as without admission. */
export function admitOrRespond<Native extends object, Handler>(
  decided: Decided<Native>,
  setup: AdmissionSetup<Native, Handler>,
): MaybePromise<Passage<Handler>> {
  const { admission } = setup
  const { context, decision } = decided
  return andThen(orReleased(decided, setup), (takes) => {
    if (takes === false) {
      const passage = setup.responder.respond(decided)
      return andThen(passage, (known) => varying(known, context, admission))
    }
    if (!decision.allowed) {
      return takes === true ? overflow(decided, setup) : takenBefore(takes, decided, setup)
    }
    setup.responder.settleAtEnd(decided)
    return andThen(takes === true ? takeOrTell(decided, setup) : takes, (known) => {
      setup.responder.observe(decided, known.isNew || known.isKnown)
      return answered(known, { decided, charged: decided }, setup)
    })
  })
}

/**
 * Releases what a request holds if the admission fails. If it is unknown whether a request is
 * taken, no passage results, so nothing else gives back the units that it holds.
 */
function orReleased<Native extends object, Handler>(
  decided: Decided<Native>,
  { admission, limiter, responder }: AdmissionSetup<Native, Handler>,
): ReturnType<Admission<Native>['takes']> {
  const { context, decision } = decided
  try {
    const takes = admission.takes(context, decision)
    if (!isPromise(takes)) return takes
    return takes.catch(async (error: unknown) => {
      responder.observe(decided)
      await limiter.release(decision)
      throw error
    })
  } catch (error) {
    responder.observe(decided)
    void limiter.release(decision)
    throw error
  }
}

/**
 * Lets the admission take a request without limits: if requests are queued, there may be no handler
 * for it.
 */
export function admitUnlimited<Native extends object, Handler>(
  context: RequestContext<Native>,
  admission: Admission<Native>,
  otherwise: Passage<Handler>,
): MaybePromise<Passage<Handler>> {
  return andThen(admission.takes(context, undefined), (takes) => {
    if (takes === false) return varying(otherwise, context, admission)
    return andThen(takes === true ? admission.take(context) : takes, (answer) => ({
      decision: undefined,
      verdict: verdictOf(answer, [], context),
      hold: undefined,
    }))
  })
}

/**
 * Lets the admission take a request that is denied, if the limits allow that which are no reason to
 * take it. One that is wrong, or was taken before, is refused: it would cost its client nothing.
 */
async function overflow<Native extends object, Handler>(
  decided: Decided<Native>,
  setup: AdmissionSetup<Native, Handler>,
): Promise<Passage<Handler>> {
  const charged = await charge(decided, setup.limiter)
  if (!charged.decision.allowed) return setup.responder.respond(decided)
  setup.responder.settleAtEnd(charged)
  const answer = await takeOrTell(charged, setup)
  const { fullForMs = 0, isNew, givesBack } = answer
  if (isNew || (givesBack && fullForMs === 0)) {
    setup.responder.observe(charged, isNew)
    return answered(answer, { decided, charged }, setup)
  }
  giveBack(charged, setup.limiter)
  return setup.responder.respond({ ...decided, decision: later(decided.decision, fullForMs) })
}

/**
 * Answers a request that was taken before, and is over a limit now: it takes nothing, and is no
 * denial.
 */
function takenBefore<Native extends object, Handler>(
  answer: Taken,
  decided: Decided<Native>,
  setup: AdmissionSetup<Native, Handler>,
): Passage<Handler> {
  const { source } = decided.decision
  const decision = { allowed: true, outcomes: [], retryAfterMs: 0, delayMs: 0, source } as const
  setup.responder.observe({ ...decided, checks: [], decision }, true)
  return answered(answer, { decided, charged: decided }, setup)
}

/** Has the admission take a request. If that fails, observers are told of the decision alone. */
async function takeOrTell<Native extends object, Handler>(
  decided: Decided<Native>,
  { admission, responder }: AdmissionSetup<Native, Handler>,
): Promise<Taken> {
  try {
    return await admission.take(decided.context)
  } catch (error) {
    responder.observe(decided)
    throw error
  }
}

/** @param requests as it was decided, and as it was charged */
function answered<Native extends object, Handler>(
  answer: Taken,
  { decided, charged }: { decided: Decided<Native>; charged: Decided<Native> },
  setup: AdmissionSetup<Native, Handler>,
): Passage<Handler> {
  if (answer.givesBack) giveBack(charged, setup.limiter)
  const told = setup.responder.fieldsFor(decided)
  const verdict = verdictOf(answer, told.fields, decided.context)
  return { decision: told.decision, verdict, hold: undefined }
}

/**
 * A denied request took nothing, not even of the policies that allow it; those are the hard ones,
 * and are charged now.
 */
function charge<Native extends object>(
  decided: Decided<Native>,
  limiter: Limiter,
): MaybePromise<Decided<Native>> {
  const { context, timing } = decided
  const checks = allowing(decided)
  return andThen(limiter.decide(checks, context.native), (known) => ({
    context,
    checks,
    decision: known,
    timing,
  }))
}

function allowing<Native extends object>({
  decision: { outcomes },
  checks,
}: Decided<Native>): readonly PolicyCheck<Native>[] {
  return divideChecks(checks).enforced.filter((_check, index) => outcomes[index]?.allowed)
}

function verdictOf<Native extends object>(
  { status, fields, body }: Taken,
  limitFields: readonly ResponseField[],
  { response }: RequestContext<Native>,
): Answer {
  const vary = varyOnPrefer(response)
  return { action: 'answer', status, fields: [...limitFields, ...fields, vary], body }
}

function varying<Native extends object, Handler>(
  passage: Passage<Handler>,
  { request, response }: RequestContext<Native>,
  admission: Admission<Native>,
): Passage<Handler> {
  if (!admission.varies(request)) return passage
  const { verdict } = passage
  const fields = [...verdict.fields, varyOnPrefer(response)]
  return { ...passage, verdict: { ...verdict, fields } }
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
