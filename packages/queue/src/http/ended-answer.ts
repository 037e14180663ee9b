import { isOptions, isWholeNumber, type MaybePromise, warnOnce } from '@sluice/core'
import type { JobStatus } from '../job.ts'
import { jsonText } from '../json-text.ts'
import type { Queue } from '../queue.ts'
import { type JobAnswer, jobAnswer, json } from './answers.ts'

/** The answer of a job that is done. */
export interface JobResponse {
  /** 200 to 299. @default 200 */
  status?: number
  /** Headers in addition to those of the limits. */
  headers?: Readonly<Record<string, string>>
  /** Anything that JSON can carry. @default no body */
  body?: unknown
}

/** Function of the user that makes the answer for a job that is done. */
export interface Endings<Native> {
  readonly queue: Queue<Native>
  readonly toAnswer?: ((job: JobStatus) => MaybePromise<JobResponse>) | undefined
}

/**
 * Makes the answer for a job that has ended: at the monitor, after a wait, and for a repeated
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
  warnOnce('toAnswer must yield { status: 200 to 299, headers, body }; the result itself stood in')
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
