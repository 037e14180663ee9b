import type { Taken } from '@sluice/http'
import type { EnqueueResult } from '../queue.ts'
import { type JobAnswer, problem, retryIn } from './answers.ts'
import type { RequestBody } from './request-body.ts'

/** An answer as the guard writes it. */
export function taken({ status, headers, body: text, isOurs = false }: JobAnswer): Taken {
  const { 'Content-Type': contentType = '', ...rest } = headers
  return { status, fields: Object.entries(rest), body: { contentType, text }, givesBack: isOurs }
}

const bodyProblems = {
  'too-large': [413, 'The body is too large to be queued.'],
  malformed: [400, 'The body is not what its Content-Type says.'],
  nested: [400, 'The body is nested too deeply to be queued.'],
  encoded: [415, 'A body with a Content-Encoding cannot be queued.'],
} as const

export function bodyProblem(outcome: Exclude<RequestBody['outcome'], 'read'>): Taken {
  const [status, detail] = bodyProblems[outcome]
  return taken(problem(status, { detail }))
}

/** What is told to a client whose request was not enqueued. */
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
