import type { Decision, DecisionTiming, MaybePromise, Reservation } from '@sluice/core'
import type { PolicyCheck } from '../options/bound-policy.ts'
import type { RequestContext } from '../request/context.ts'
import type { Hold } from '../request/passage.ts'

/** A request, and what was asked and decided for it. */
export interface Found<Native extends object> {
  readonly context: RequestContext<Native>
  readonly decision: Decision
  /** All that was asked, those in shadow too. */
  readonly checks: readonly PolicyCheck<Native>[]
  /** Asked once, before anything of it is given back. @default true */
  readonly mayGiveBack?: (() => MaybePromise<boolean>) | undefined
  /** The units that are held for the request, if a policy has `reserve`. */
  readonly budgets?: RequestBudgets | undefined
  /** The time that the decision took, if it is observed. */
  readonly timing?: DecisionTiming | undefined
}

/** The budgets of one request, settled when its response is over. */
export interface RequestBudgets extends Hold {
  /** @throws SluiceError when there is no such budget, or none is named of several */
  of(policy: string | undefined): Reservation
}

export type Decide<Native extends object> = (
  context: RequestContext<Native>,
  checks: readonly PolicyCheck<Native>[],
  timing?: DecisionTiming,
) => MaybePromise<Found<Native>>
