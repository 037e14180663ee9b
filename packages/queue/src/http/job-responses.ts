import {
  isOptions,
  isSluiceError,
  isWholeNumber,
  type MaybePromise,
  type SluiceError,
  warnOnce,
} from '@sluice/core'
import { formatRetryAfter } from '@sluice/headers'
import {
  type Problem,
  plainProblem,
  problemMediaType,
  quotaExceeded,
  type RequestBody,
  type Taken,
} from '@sluice/http'
import type { JobStatus } from '../job.ts'
import { jsonText } from '../json-text.ts'
import type { EnqueueResult, Queue } from '../queue.ts'

/** A response, for the guard or the monitor to write. */
export interface JobAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** True if the server failed, so that the request must not be charged. @default false */
  readonly isOurs?: boolean
}

/** Shortest and longest wait (ms) for a polling client. */
const minPollMs = 1_000
const maxPollMs = 30_000

export interface Monitored {
  /** URL of the job at the monitor. */
  readonly monitor: string
  /** Estimate of the wait, in ms. */
  readonly expectedWaitMs: number
}

/** The job was accepted: 202 with its status URL, in the body too (RFC 9110 §15.3.3). */
export function acceptedAnswer(
  { id }: { id: string },
  { monitor, expectedWaitMs }: Monitored,
): JobAnswer {
  return json(
    202,
    { id, status: 'pending', monitor },
    { Location: monitor, ...pollIn(expectedWaitMs) },
  )
}

/** Answers for a job that may not have ended, at the monitor or after a wait. */
export function jobAnswer(job: JobStatus, expectedWaitMs: number): JobAnswer {
  const { id, state } = job
  if (state === 'pending') return json(200, { id, status: state }, pollIn(expectedWaitMs))
  if (state === 'running') return json(200, { id, status: state }, pollIn(minPollMs))
  if (state === 'done') return json(200, { id, status: state, result: job.result ?? null })
  if (state === 'cancelled') return json(200, { id, status: state })
  const status = state === 'expired' ? 410 : 500
  return problem(status, { detail: details[state], id, 'job-status': state })
}

const details = {
  expired: 'The job waited too long and was not run.',
  failed: 'The job failed and will not be retried.',
} as const

/** The response for a finished job. */
export interface JobResponse {
  /** 200 to 299. @default 200 */
  status?: number
  /** Headers in addition to the rate-limit headers. */
  headers?: Readonly<Record<string, string>>
  /** Anything that fits into JSON. @default no body */
  body?: unknown
}

/** User function that builds the response for a finished job. */
export interface Endings<Native> {
  readonly queue: Queue<Native>
  readonly toAnswer?: ((job: JobStatus) => MaybePromise<JobResponse>) | undefined
}

/**
 * Builds the response for a job that has ended: at the monitor, after a wait, and for a repeated
 * request.
 */
export async function endedAnswer<Native>(
  job: JobStatus,
  { queue, toAnswer }: Endings<Native>,
): Promise<JobAnswer> {
  const { id, state } = job
  if (state !== 'done') return jobAnswer(job, 0)
  const location = await queue.resultUrl(job)
  if (location !== undefined) return json(303, { id, status: state }, { Location: location })
  if (!toAnswer) return jobAnswer(job, 0)
  const response: unknown = await toAnswer(job)
  if (isJobResponse(response)) return written(response)
  warnOnce('toAnswer must return { status: 200 to 299, headers, body }; the result itself was sent')
  return jobAnswer(job, 0)
}

function isJobResponse(value: unknown): value is JobResponse {
  if (!isOptions(value)) return false
  const { status = 200, headers = {} }: { status?: unknown; headers?: unknown } = value
  return (
    isWholeNumber(status, { min: 200, max: 299 }) &&
    isOptions(headers) &&
    Object.values(headers).every((field) => typeof field === 'string')
  )
}

function written({ status = 200, headers = {}, body }: JobResponse): JobAnswer {
  const own = Object.fromEntries(
    Object.entries(headers).filter(([name]) => name.toLowerCase() !== 'content-type'),
  )
  return {
    status,
    headers: { ...own, 'Content-Type': 'application/json', 'Cache-Control': 'no-store' },
    body: body === undefined ? '' : jsonText(body),
  }
}

export function problem(
  status: number,
  members: Readonly<Record<string, string>> = {},
  headers: Readonly<Record<string, string>> = {},
): JobAnswer {
  return problemAnswer({ ...plainProblem(status), ...members }, headers)
}

/** Builds the refusal for one of this package's policies. */
export function quotaProblem(policy: string, retryAfterMs: number): JobAnswer {
  return problemAnswer(quotaExceeded([policy]), retryIn(retryAfterMs))
}

export function retryIn(retryAfterMs: number): Readonly<Record<string, string>> {
  const value = formatRetryAfter(retryAfterMs)
  return value === undefined ? {} : { 'Retry-After': value }
}

/** A 202 is not a refusal: the wait is a hint for the next poll. */
function pollIn(expectedWaitMs: number): Readonly<Record<string, string>> {
  return retryIn(Math.min(Math.max(expectedWaitMs, minPollMs), maxPollMs))
}

export function json(
  status: number,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): JobAnswer {
  return answer(status, { 'Content-Type': 'application/json', ...headers }, body)
}

function problemAnswer(body: Problem, headers: Readonly<Record<string, string>>): JobAnswer {
  return answer(body.status, { 'Content-Type': problemMediaType, ...headers }, body)
}

function answer(
  status: number,
  headers: Readonly<Record<string, string>>,
  body: object,
): JobAnswer {
  return {
    status,
    headers: { ...headers, 'Cache-Control': 'no-store' },
    body: JSON.stringify(body),
  }
}

/** `Retry-After` (ms) while the broker fails: the end of the outage is unknown. */
const brokerRetryMs = 5_000

/** Runs work; answers 503 if the broker fails, because that is not the client's fault. */
export async function orUnavailable<T>(work: () => Promise<T>): Promise<T | JobAnswer> {
  return orWithout(work, { ...problem(503, {}, retryIn(brokerRetryMs)), isOurs: true })
}

/** Runs work; answers the substitute if the broker fails. */
export async function orWithout<T, U>(work: () => Promise<T>, otherwise: U): Promise<T | U> {
  try {
    return await work()
  } catch (error) {
    if (!isOfBroker(error)) throw error
    warnOnce(`the queue could not handle a request: ${error.message}`, error.code)
    return otherwise
  }
}

/**
 * Returns whether the broker failed. Any other error comes from the application: from one of its
 * functions, or from a payload that does not fit into JSON.
 */
function isOfBroker(error: unknown): error is SluiceError {
  return isSluiceError(error) && error.code.startsWith('SLUICE_BROKER_')
}

/** Converts an answer for the guard. */
export function taken({ status, headers, body: text, isOurs = false }: JobAnswer): Taken {
  const { 'Content-Type': contentType = '', ...rest } = headers
  return { status, fields: Object.entries(rest), body: { contentType, text }, givesBack: isOurs }
}

const bodyProblems = {
  'too-large': [413, 'The body is too large to be queued.'],
  malformed: [400, 'The body does not match its Content-Type.'],
  nested: [400, 'The body is nested too deeply to be queued.'],
  encoded: [415, 'A body with a Content-Encoding cannot be queued.'],
} as const

export function bodyProblem(outcome: Exclude<RequestBody['outcome'], 'read'>): Taken {
  const [status, detail] = bodyProblems[outcome]
  return taken(problem(status, { detail }))
}

/** The refusal for a request that was not enqueued. */
export function notEnqueued(result: Exclude<EnqueueResult, { id: string }>): Taken {
  if (result.outcome !== 'full') {
    if (result.outcome === 'too-large') return bodyProblem('too-large')
    return taken(problem(422, { detail: 'This Idempotency-Key was used for another request.' }))
  }
  const { bound, retryAfterMs } = result
  const [status, detail] =
    bound === 'identity'
      ? ([429, 'Too many of your requests are queued.'] as const)
      : ([503, 'The queue is full.'] as const)
  const answer = taken(problem(status, { detail }, retryIn(retryAfterMs)))
  return { ...answer, givesBack: true, fullForMs: retryAfterMs }
}
