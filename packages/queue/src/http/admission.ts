import { createHash } from 'node:crypto'
import type { Decision, Duration, MaybePromise, Policy } from '@sluice/core'
import type { Admission, HttpRequest, Taken } from '@sluice/http'
import { isOpen } from '../job.ts'
import type { EnqueueResult, JobRequest, Queue } from '../queue.ts'
import { type AdmissionSetup, type Admit, setUpAdmission } from './admission-setup.ts'
import { acceptedAnswer, type JobAnswer, jobAnswer, problem, retryIn } from './answers.ts'
import { envelopeOf, type RequestEnvelope } from './envelope.ts'
import { parseIdempotencyKey } from './idempotency-key.ts'
import { parsePrefer } from './prefer.ts'
import { readBody } from './request-body.ts'
import { orUnavailable } from './unavailable.ts'

export interface AdmissionOptions<Native = unknown> {
  queue: Queue<Native>
  /** Where the status monitor is mounted, as clients see it: `'/jobs'`. Locations are made of it. */
  monitor: string
  /**
   * Which requests are queued: `always`, those that pass the limits; `overflow`, those that are over a soft limit, and those that ask with
   * `Prefer: respond-async`; `preferred`, only those.
   * @default 'always'
   */
  admit?: Admit
  /** Names of the policies that are soft: over them alone a request is queued; over any other it is refused. `overflow` only. @default all */
  soft?: readonly string[]
  /** Names of request headers that jobs carry, in lower case. @default ['content-type', 'accept-language'] */
  headers?: readonly string[]
  /** The longest body, in bytes; a longer one gets 413. @default 65_536 */
  maxBodyBytes?: number
  /** Makes the payload of the job. @default the envelope */
  toJob?: (envelope: RequestEnvelope, native: Native) => MaybePromise<unknown>
  /** What `Idempotency-Key` means. */
  idempotency?: IdempotencyOptions
  /** The longest that a request is held for `Prefer: wait`. @default '30s' */
  maxWait?: Duration
  /** Requests that are held for `Prefer: wait` at once in this process; one more is answered at once. @default 1_000 */
  maxWaiting?: number
}

export interface IdempotencyOptions {
  /** Whether a request without a key gets 400. @default false */
  required?: boolean
  /** Whether the key must be quoted, as the draft has it; many clients leave the quotes away. @default false */
  strict?: boolean
  /** What a request gets whose job has not ended: that job (202), or 409. @default 'same' */
  whileRunning?: 'same' | 'conflict'
}

/**
 * Lets a guard put requests into a queue, which then are answered with 202.
 * @example
 * app.post('/reports', rateLimit({ limit: 10, window: '1s', admission: createAdmission({ queue, monitor: '/jobs' }) }))
 * app.use('/jobs', mount(statusMonitor({ queue })))
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function createAdmission<Native = unknown>(
  options: AdmissionOptions<Native>,
): Admission<Native> {
  return new QueueAdmission(setUpAdmission(options))
}

class QueueAdmission<Native> implements Admission<Native> {
  readonly #setup: AdmissionSetup<Native>
  #waiting = 0

  constructor(setup: AdmissionSetup<Native>) {
    this.#setup = setup
  }

  takes(request: HttpRequest, decision: Decision | undefined): boolean {
    const { admit } = this.#setup
    if (decision && !decision.allowed) return admit === 'overflow' && this.#isSoft(decision)
    return admit === 'always' || parsePrefer(request.header('prefer')).respondAsync
  }

  /** Only responses that a cache may keep depend on it. */
  varies({ method }: HttpRequest): boolean {
    return this.#setup.admit !== 'always' && (method === 'GET' || method === 'HEAD')
  }

  async take(native: Native, request: HttpRequest): Promise<Taken> {
    const key = this.#keyOf(request)
    if (typeof key === 'object') return taken(key)
    const body = await readBody(request, this.#setup.maxBodyBytes)
    if (body.outcome !== 'read') return taken(bodyProblem(body.outcome))
    const { queue, headers, toJob } = this.#setup
    const identity = await queue.identityOf(native, request)
    const envelope = envelopeOf(request, headers, body)
    const payload = toJob ? await toJob(envelope, native) : envelope
    const fingerprint = digest(envelope)
    const job = { identity, payload, idempotencyKey: key, fingerprint }
    const answer = await orUnavailable(() => this.#enqueue(job, request))
    return 'headers' in answer ? taken(answer) : answer
  }

  async #enqueue(job: JobRequest, request: HttpRequest): Promise<Taken> {
    const result = await this.#setup.queue.enqueue(job)
    if (!('id' in result)) return refused(result)
    return taken(await this.#answer(result, job.identity, request))
  }

  async #answer(
    { id, outcome, retryAfterMs: drainMs }: Extract<EnqueueResult, { id: string }>,
    identity: string,
    request: HttpRequest,
  ): Promise<JobAnswer> {
    const { queue, monitor, whileRunning } = this.#setup
    const known = outcome === 'known' ? await queue.status(id, identity) : undefined
    if (known && !isOpen(known)) return jobAnswer(known, drainMs)
    if (known && whileRunning === 'conflict') {
      return problem(
        409,
        { detail: 'A request with this Idempotency-Key is under way.' },
        retryIn(1_000),
      )
    }
    const { respondAsync, waitMs = 0 } = parsePrefer(request.header('prefer'))
    const ended = await this.#waitFor(id, identity, waitMs)
    if (ended) return jobAnswer(ended, drainMs)
    const accepted = acceptedAnswer({ id }, { monitor: `${monitor}/${id}`, drainMs })
    if (!respondAsync) return accepted
    return { ...accepted, headers: { ...accepted.headers, 'Preference-Applied': 'respond-async' } }
  }

  /** How a job has ended, if it does while its client would rather wait. */
  async #waitFor(id: string, identity: string, waitMs: number) {
    const { queue, maxWaitMs, maxWaiting } = this.#setup
    if (waitMs === 0 || this.#waiting >= maxWaiting) return undefined
    this.#waiting += 1
    try {
      const found = await queue.settled(id, identity, Math.min(waitMs, maxWaitMs))
      return found && !isOpen(found) ? found : undefined
    } finally {
      this.#waiting -= 1
    }
  }

  #isSoft({ outcomes, source }: Decision): boolean {
    if (source === 'closed' || source === 'shed' || outcomes.length === 0) return false
    const { soft } = this.#setup
    return outcomes.every(
      ({ allowed, policy }) => allowed || (soft?.includes(policy.name) ?? mayBeSoft(policy)),
    )
  }

  /** The key of the client's own, or what is wrong with it. */
  #keyOf(request: HttpRequest): string | undefined | JobAnswer {
    const { isRequired, isStrict } = this.#setup
    const header = request.header('idempotency-key')
    if (header === undefined) {
      return isRequired ? problem(400, { detail: 'Idempotency-Key is missing.' }) : undefined
    }
    const key = parseIdempotencyKey(header, { isStrict })
    return (
      key ?? problem(400, { detail: 'Idempotency-Key is no quoted string of 1 to 256 characters.' })
    )
  }
}

/** Whom a penalty blocks is refused. */
function mayBeSoft({ algorithm }: Policy): boolean {
  return algorithm !== 'penalty'
}

const bodyProblems = {
  'too-large': [413, 'The body is too large to be queued.'],
  malformed: [400, 'The body is not what its Content-Type says.'],
  encoded: [415, 'A body with a Content-Encoding cannot be queued.'],
} as const

function bodyProblem(outcome: keyof typeof bodyProblems): JobAnswer {
  const [status, detail] = bodyProblems[outcome]
  return problem(status, { detail })
}

/** What is told to a client whose request was not enqueued. */
function refused(result: Exclude<EnqueueResult, { id: string }>): Taken {
  if (result.outcome !== 'full') {
    if (result.outcome === 'too-large') return taken(bodyProblem('too-large'))
    const detail = 'This Idempotency-Key was used for another request.'
    return taken(problem(422, { detail }))
  }
  const { bound, retryAfterMs } = result
  const [status, detail] =
    bound === 'identity'
      ? ([429, 'Too many of your requests are queued.'] as const)
      : ([503, 'The queue is full.'] as const)
  return { ...taken(problem(status, { detail }, retryIn(retryAfterMs))), fullForMs: retryAfterMs }
}

function taken({ status, headers, body: text }: JobAnswer): Taken {
  const { 'Content-Type': contentType = '', ...rest } = headers
  return { status, fields: Object.entries(rest), body: { contentType, text } }
}

/** What makes a request another one: headers do not. */
function digest({ method, url, body }: RequestEnvelope): string {
  const text = JSON.stringify([method, url, body ?? null])
  return createHash('sha256').update(text).digest('base64url')
}
