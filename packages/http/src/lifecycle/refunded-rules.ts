import { andThen, isPromise, type MaybePromise, show } from '@sluice/core'
import type { Rule } from '../guard/bound-policy.ts'
import { inOrder } from '../guard/in-order.ts'
import type { Report } from '../guard/report.ts'
import type { RuleSettlement } from './settlement.ts'

interface Ended<Native> {
  readonly native: Native
  readonly status: number
  readonly report: Report
}

/** The rules that give back what was taken, now that the response is over. Never throws or rejects: there is nobody left to tell. */
export function refundedRules<Native>(
  rules: readonly Rule<Native>[],
  ended: Ended<Native>,
): MaybePromise<readonly Rule<Native>[]> {
  const concerned = rules.filter(({ settlement }) => settlement !== undefined)
  const functions = [...new Set(concerned.map(({ settlement }) => settlement?.ask))]
  const answers = inOrder(functions, (ask) => {
    const settlement = concerned.find((rule) => rule.settlement?.ask === ask)?.settlement
    return settlement ? answerOf(settlement, ended) : undefined
  })
  return andThen(answers, (known) =>
    concerned.filter(
      ({ settlement }) => known[functions.indexOf(settlement?.ask)] === settlement?.refundsOn,
    ),
  )
}

/** What a function of the user's says; `undefined`, and a report, when it says nothing: then the charge is kept. */
function answerOf<Native>(
  { option, ask }: RuleSettlement<Native>,
  { native, status, report }: Ended<Native>,
): MaybePromise<boolean | undefined> {
  const keep = (how: string): undefined => {
    report(
      'SLUICE_ANSWER_INVALID',
      option,
      `it must answer true or false, but ${how}; the charge was kept`,
    )
  }
  const threw = (error: unknown): undefined =>
    keep(`threw ${error instanceof Error ? `a ${error.name}` : show(error)}`)
  const accept = (answer: unknown): boolean | undefined =>
    typeof answer === 'boolean' ? answer : keep(`answered ${show(answer)}`)
  try {
    const answer = ask(native, { status })
    return isPromise(answer) ? answer.then(accept, threw) : accept(answer)
  } catch (error) {
    return threw(error)
  }
}
