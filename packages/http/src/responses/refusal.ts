import { andThen, type Decision, type MaybePromise, SluiceError } from '@sluice/core'
import type { LimitInForce } from '../options/bound-policy.ts'
import type { Message, Settings } from '../options/option-table.ts'
import type { ResponseBody, ResponseField } from '../request/exchange.ts'
import { type Passage, type RequestDecision, refuseUnasked } from '../request/passage.ts'
import {
  abnormalUsage,
  type Problem,
  plainProblem,
  problemMediaType,
  quotaExceeded,
  reducedCapacity,
} from './problem.ts'

/** The reason for a refusal: the client's quota, a lack of capacity, or a server failure. */
export type RefusalCause = 'quota' | 'capacity' | 'failure'

export interface Refusal<Native> {
  readonly native: Native
  readonly decision: RequestDecision
  readonly cause: RefusalCause
  readonly status: number
  /** The names of the visible policies that deny. */
  readonly violated: readonly string[]
  /** Names of the penalties among them. */
  readonly penalties: readonly string[]
}

/** Finds the cause. A request that is only over reduced limits would pass in quiet times. */
export function refusalCause(
  { source, outcomes }: Decision,
  checks: readonly LimitInForce[],
): RefusalCause {
  if (source === 'closed') return 'failure'
  if (source === 'shed') return 'capacity'
  let cause: RefusalCause = 'quota'
  for (const [index, { allowed }] of outcomes.entries()) {
    if (allowed) continue
    if (!checks[index]?.reduced) return 'quota'
    cause = 'capacity'
  }
  return cause
}

/** Returns the body of a refusal. A fixed message is about limits, so a 503 omits it. */
function refusalBody<Native>(
  message: Settings<Native, unknown>['message'],
  refusal: Refusal<Native>,
): MaybePromise<ResponseBody> {
  const { native, decision, cause } = refusal
  if (typeof message !== 'function') return bodyOf(cause === 'quota' ? message : undefined, refusal)
  return andThen(message(native, decision), (found) => bodyOf(found, refusal))
}

function bodyOf(message: Message | undefined, refusal: Refusal<unknown>): ResponseBody {
  if (typeof message === 'string') {
    return { contentType: 'text/plain; charset=utf-8', text: message }
  }
  if (typeof message === 'object' && message !== null) {
    return { contentType: 'application/json', text: JSON.stringify(message) }
  }
  return { contentType: problemMediaType, text: JSON.stringify(problemOf(refusal)) }
}

function problemOf({ decision, cause, status, violated, penalties }: Refusal<unknown>): Problem {
  if (penalties.length > 0) return abnormalUsage(penalties, status)
  if (cause === 'quota') return quotaExceeded(violated, status)
  if (decision.source === 'shed') return reducedCapacity([])
  const isHidden = violated.length === 0
  return cause === 'failure' || isHidden ? plainProblem(status) : reducedCapacity(violated)
}

/** The decision for a request blocked by a list: no policy was checked, and no wait helps. */
export const blocked: RequestDecision = {
  ...refuseUnasked('store'),
  policy: undefined,
  key: undefined,
  // No policy was checked, so there is no key to charge and nothing to reset.
  charge: () => undefined,
  spend: () => noBudget(),
  budget: () => noBudget(),
  reset: async () => false,
}

/** @throws SluiceError: no units are held for the request */
export function noBudget(): never {
  throw new SluiceError(
    'SLUICE_POLICY_UNKNOWN',
    'spend() and budget() need a policy with reserve, but none holds units for this request; set reserve: true on one',
  )
}

/** Returns the passage of a refused request, with the user's handler or the body. */
export function rejection<Native, Handler>(
  { message, handler }: Pick<Settings<Native, Handler>, 'message' | 'handler'>,
  refusal: Refusal<Native>,
  fieldsNow: () => readonly ResponseField[],
): MaybePromise<Passage<Handler>> {
  const { decision, status } = refusal
  const body = handler ? undefined : refusalBody(message, refusal)
  return andThen(body, (known) => {
    const fields: readonly ResponseField[] = [...fieldsNow(), ['Cache-Control', 'no-store']]
    const verdict = { action: 'reject', status, fields, body: known, handler } as const
    return { decision, verdict, hold: undefined }
  })
}

/**
 * Refuses a request blocked by a list: 403, since it is not over a limit. `statusCode` and a fixed
 * message are about limits, so they do not apply; a handler and a message function do.
 */
export function forbidden<Native, Handler>(
  { message, handler }: Pick<Settings<Native, Handler>, 'message' | 'handler'>,
  native: Native,
): MaybePromise<Passage<Handler>> {
  const found = typeof message === 'function' ? message : undefined
  const none = { violated: [], penalties: [] }
  const refusal = { native, decision: blocked, cause: 'quota', status: 403, ...none } as const
  return rejection({ message: found, handler }, refusal, () => [])
}
