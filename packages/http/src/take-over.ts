import { andThen, type Decision, divideChecks, type Limiter, type MaybePromise } from '@sluice/core'
import type { Admission, Taken } from './admission.ts'
import type { Exchange } from './exchange.ts'
import type { Answer, Passage } from './passage.ts'
import type { ResponseField } from './responses/http-response.ts'
import { varyOnPrefer } from './responses/vary.ts'
import type { RuleCheck } from './rule.ts'
import { giveBack } from './settlement/give-back.ts'
import type { Decided } from './settlement/request-account.ts'
import type { RequestDecision } from './settlement/request-decision.ts'

/** What of a guard is needed to have requests taken over. */
export interface TakeOverSetup<Native extends object, Handler> {
  readonly admission: Admission<Native>
  readonly limiter: Limiter
  /** Answers as without admission. */
  answer(decided: Decided<Native>): MaybePromise<Passage<Handler>>
  /** Sees to it that what a request holds is settled when its response is over. */
  hold(charged: Decided<Native>): void
  /** What is told of a request that is no refusal. */
  tell(decided: Decided<Native>): Told
}

interface Told {
  readonly decision: RequestDecision
  readonly fields: readonly ResponseField[]
}

/** Has a request taken over, or else answers it as without admission. */
export function takenOrAnswered<Native extends object, Handler>(
  decided: Decided<Native>,
  setup: TakeOverSetup<Native, Handler>,
): MaybePromise<Passage<Handler>> {
  const { admission } = setup
  const { exchange, decision } = decided
  if (!admission.takes(exchange.request, decision)) {
    return andThen(setup.answer(decided), (passage) => varying(passage, exchange, admission))
  }
  return andThen(charge(decided, setup.limiter), (charged) => {
    if (!charged.decision.allowed) return setup.answer(decided)
    setup.hold(charged)
    return andThen(admission.take(exchange.native, exchange.request), (answer) => {
      if (answer.status >= 400) giveBack(charged, setup.limiter)
      if (answer.fullForMs !== undefined && !decision.allowed) {
        return setup.answer({ ...decided, decision: later(decision, answer.fullForMs) })
      }
      const told = setup.tell(decided)
      const verdict = verdictOf(answer, told.fields, exchange)
      return { decision: told.decision, verdict, hold: undefined }
    })
  })
}

/** Has a request taken over that no limit applies to: where requests are queued, nobody else may be there to do it. */
export function takenUnlimited<Native extends object, Handler>(
  exchange: Exchange<Native>,
  admission: Admission<Native>,
  otherwise: Passage<Handler>,
): MaybePromise<Passage<Handler>> {
  if (!admission.takes(exchange.request, undefined)) return varying(otherwise, exchange, admission)
  return andThen(admission.take(exchange.native, exchange.request), (answer) => ({
    decision: undefined,
    verdict: verdictOf(answer, [], exchange),
    hold: undefined,
  }))
}

/** A denied request took nothing, not even of the policies that allow it; those are the hard ones, and are charged now. */
function charge<Native extends object>(
  decided: Decided<Native>,
  limiter: Limiter,
): MaybePromise<Decided<Native>> {
  const { exchange, decision } = decided
  if (decision.allowed) return decided
  const checks = allowing(decided)
  return andThen(limiter.decide(checks), (known) => ({ exchange, checks, decision: known }))
}

function allowing<Native extends object>({
  decision: { outcomes },
  checks,
}: Decided<Native>): readonly RuleCheck<Native>[] {
  return divideChecks(checks).enforced.filter((_check, index) => outcomes[index]?.allowed)
}

function verdictOf<Native extends object>(
  { status, fields, body }: Taken,
  limitFields: readonly ResponseField[],
  { response }: Exchange<Native>,
): Answer {
  const vary = varyOnPrefer(response)
  return { action: 'answer', status, fields: [...limitFields, ...fields, vary], body }
}

function varying<Native extends object, Handler>(
  passage: Passage<Handler>,
  { request, response }: Exchange<Native>,
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
