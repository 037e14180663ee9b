import type { ResponseField } from '../adapter/response.ts'
import type { RequestDecision } from '../lifecycle/decision.ts'
import type { Hold } from '../lifecycle/hold.ts'

/** What is to be done with a request. */
export type Verdict<Handler = unknown> = Pass | Delay | Answer | Reject<Handler>

export interface Pass {
  readonly action: 'pass'
  readonly fields: readonly ResponseField[]
}

/** The request passes when its turn has come: it is held until then. */
export interface Delay {
  readonly action: 'delay'
  /** As of the decision: set before the wait. */
  readonly fields: readonly ResponseField[]
  /** Whether the request goes on: false when its response was over before. Never rejects. */
  readonly turn: Promise<boolean>
}

export interface Reject<Handler = unknown> {
  readonly action: 'reject'
  /** Why: what a handler of the user's is told. */
  readonly decision: RequestDecision
  readonly status: number
  readonly fields: readonly ResponseField[]
  /** What the client reads; `undefined` where a handler of the user's replies instead. */
  readonly body: RejectBody | undefined
  /** Who replies in place of the body; `'throw'`: the error handling of the framework. */
  readonly handler: Handler | 'throw' | undefined
}

/** The request is answered in place of the application: somebody took it over. */
export interface Answer {
  readonly action: 'answer'
  readonly status: number
  readonly fields: readonly ResponseField[]
  readonly body: RejectBody
}

export interface RejectBody {
  readonly contentType: string
  readonly text: string
}

/** What an adapter holds for one request. */
export interface Passage<Handler = unknown> {
  /** `undefined` when nothing was decided: a preflight, or a request that is skipped. */
  readonly decision: RequestDecision | undefined
  readonly verdict: Verdict<Handler>
  /** What is to be settled when the response is over; `undefined`, as for most requests: nothing, so nobody need listen. */
  readonly hold: Hold | undefined
}

/** The passage of a request that Sluice has nothing to say about. */
export const untouched: Passage<never> = {
  decision: undefined,
  verdict: { action: 'pass', fields: [] },
  hold: undefined,
}
