import type { Decision, DecisionTiming, MaybePromise } from '@sluice/core'
import type { PolicyCheck } from '../options/bound-policy.ts'
import type { RequestContext } from '../request/context.ts'

/** One request as it was decided. */
export interface Decided<Native extends object> {
  readonly context: RequestContext<Native>
  readonly decision: Decision
  /** All that was asked, those in shadow too. */
  readonly checks: readonly PolicyCheck<Native>[]
  /** Asked once, before anything of it is given back. @default true */
  readonly mayGiveBack?: (() => MaybePromise<boolean>) | undefined
  /** The time that the decision took, if it is observed. */
  readonly timing?: DecisionTiming | undefined
}
