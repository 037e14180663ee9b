import { andThen, type Decision, type Limiter, type MaybePromise } from '@sluice/core'
import type { Admission, Taken } from './admission.ts'
import type { Exchange } from './guard.ts'
import type { LeaseKeeper } from './holds/lease-keeper.ts'
import type { Passage } from './passage.ts'
import type { ResponseField } from './responses/http-response.ts'
import { varyOnPrefer } from './responses/vary.ts'
import type { RuleCheck } from './rule.ts'

/** What was asked of the limits, and what they said. */
export interface Asked<Native> {
  readonly decision: Decision
  readonly checks: readonly RuleCheck<Native>[]
}

/** What of a guard is needed to have requests taken over. */
export interface TakeOverSetup<Native extends object, Handler> {
  readonly admission: Admission<Native>
  readonly limiter: Limiter
  readonly leases: LeaseKeeper
  /** Answers as without admission. */
  answer(exchange: Exchange<Native>, asked: Asked<Native>): MaybePromise<Passage<Handler>>
  /** The rate-limit fields of a response that is no refusal. */
  limitFields(exchange: Exchange<Native>, asked: Asked<Native>): readonly ResponseField[]
}

/** Has a request taken over, or else answers it as without admission. */
export function takenOrAnswered<Native extends object, Handler>(
  exchange: Exchange<Native>,
  asked: Asked<Native>,
  setup: TakeOverSetup<Native, Handler>,
): MaybePromise<Passage<Handler>> {
  const { admission, limiter } = setup
  const { decision, checks } = asked
  if (!admission.takes(exchange.request, decision)) {
    return andThen(setup.answer(exchange, asked), (passage) =>
      varying(passage, exchange, admission),
    )
  }
  // A denied request took nothing, not even of the policies that allow it; those are the hard ones.
  const charged = decision.allowed ? decision : limiter.decide(allowing(asked))
  return andThen(charged, (taken) => {
    if (!taken.allowed) return setup.answer(exchange, asked)
    return andThen(admission.take(exchange.native, exchange.request), (answer) => {
      if (answer.status >= 400) void limiter.refund(taken)
      if (answer.fullForMs !== undefined && !decision.allowed) {
        return setup.answer(exchange, { decision: later(decision, answer.fullForMs), checks })
      }
      const limitFields = setup.limitFields(exchange, asked)
      return {
        decision,
        verdict: verdictOf(answer, limitFields, exchange),
        hold: setup.leases.keep(taken),
      }
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

function verdictOf<Native extends object>(
  { status, fields, body }: Taken,
  limitFields: readonly ResponseField[],
  { response }: Exchange<Native>,
): { action: 'answer'; status: number; fields: readonly ResponseField[]; body: Taken['body'] } {
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

function allowing<Native>({ decision, checks }: Asked<Native>): readonly RuleCheck<Native>[] {
  return checks.filter((_check, index) => decision.outcomes[index]?.allowed)
}

/** Neither before the limits would let it pass, nor before there is room. */
function later(decision: Decision, fullForMs: number): Decision {
  return { ...decision, retryAfterMs: Math.max(decision.retryAfterMs, fullForMs) }
}
