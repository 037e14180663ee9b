import type { Decision, DecisionTiming, MaybePromise, Reservation } from '@sluice/core'
import type { PolicyCheck } from '../options/bound-policy.ts'
import type { RequestContext } from '../request/context.ts'
import type { Hold } from '../request/passage.ts'

/** A request with its checks and its decision. */
export interface Found<Native extends object> {
  readonly context: RequestContext<Native>
  readonly decision: Decision
  /** All checks, including those in shadow. */
  readonly checks: readonly PolicyCheck<Native>[]
  /** Called once, before anything is given back. @default true */
  readonly mayGiveBack?: (() => MaybePromise<boolean>) | undefined
  /** The units held for the request, if a policy has `reserve`. */
  readonly budgets?: RequestBudgets | undefined
  /** The duration of the decision, if observed. */
  readonly timing?: DecisionTiming | undefined
}

/** The budgets of one request, settled when its response ends. */
export interface RequestBudgets extends Hold {
  /** @throws SluiceError if there is no such budget, or there are several and none is named */
  of(policy: string | undefined): Reservation
}

export type Decide<Native extends object> = (
  context: RequestContext<Native>,
  checks: readonly PolicyCheck<Native>[],
  timing?: DecisionTiming,
) => MaybePromise<Found<Native>>
