import type { Decision } from '@sluice/core'
import type { ResponseField } from './http-response.ts'

/** What is to be done with a request. */
export type Verdict = Pass | Reject

export interface Pass {
  readonly action: 'pass'
  readonly fields: readonly ResponseField[]
}

export interface Reject {
  readonly action: 'reject'
  /** Why: what a handler of the user's is told. */
  readonly decision: Decision
  readonly status: number
  readonly fields: readonly ResponseField[]
  /** What the client reads; `undefined` where a handler of the user's replies instead. */
  readonly body: RejectBody | undefined
}

export interface RejectBody {
  readonly contentType: string
  readonly text: string
}

/** What an adapter holds for one request. */
export interface Passage {
  /** `undefined` when nothing was decided: a preflight, or a request that is skipped. */
  readonly decision: Decision | undefined
  readonly verdict: Verdict
}

/** The passage of a request that Sluice has nothing to say about. */
export const untouched: Passage = {
  decision: undefined,
  verdict: { action: 'pass', fields: [] },
}
