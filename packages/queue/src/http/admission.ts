import { andThen, createLimiter, type Decision, type MaybePromise, type Policy } from '@sluice/core'
import {
  type Admission,
  type AdmissionRequest,
  type HttpRequest,
  readBody,
  type Taken,
} from '@sluice/http'
import { isOpen } from '../job.ts'
import type { EnqueueResult, JobRequest } from '../queue.ts'
import { envelopeOf, fingerprintOf } from './envelope.ts'
import { type HoldRequest, holdRequests } from './held-requests.ts'
import {
  acceptedAnswer,
  bodyProblem,
  endedAnswer,
  type JobAnswer,
  notEnqueued,
  orUnavailable,
  orWithout,
  problem,
  retryIn,
  taken,
} from './job-responses.ts'
import {
  type AdmissionOptions,
  type AdmissionSetup,
  checkSoft,
  isSoft,
  pollPolicy,
  setUpAdmission,
} from './options.ts'
import { parseIdempotencyKey, parsePrefer } from './request-headers.ts'

/**
 * Lets a guard put requests into a queue and answer them with 202.
 * @example
 * const admission = createAdmission({ queue, monitor: '/jobs' })
 * app.post('/reports', rateLimit({ limit: 10, window: '1s', admission }))
 * app.use('/jobs', mount(statusMonitor({ queue })))
 * @throws SluiceError if an option is unknown, missing or out of range
 */
export function createAdmission<Native = unknown>(
  options: AdmissionOptions<Native>,
): Admission<Native> {
  return new QueueAdmission(setUpAdmission(options))
}

const nobodys = 'The request has no key, so nobody could access its job.'

class QueueAdmission<Native> implements Admission<Native> {
  readonly overflows = true
  readonly #setup: AdmissionSetup<Native>
  readonly #lookups = createLimiter(pollPolicy)
  readonly #hold: HoldRequest<Native>

  constructor(setup: AdmissionSetup<Native>) {
    this.#setup = setup
    this.#hold = holdRequests(setup)
  }

  checkPolicies(policies: readonly Policy[]): void {
    checkSoft(this.#setup.soft, policies)
  }

  takes(
    asked: AdmissionRequest<Native>,
    decision: Decision | undefined,
  ): MaybePromise<boolean | Taken> {
    if (decision && !decision.allowed) return this.#takesDenied(asked, decision)
    if (this.#setup.admit === 'always') return true
    if (!parsePrefer(asked.request.header('prefer')).respondAsync) return this.#takesAgain(asked)
    return andThen(this.#identityOf(asked), (identity) => {
      return identity === undefined ? this.#takesAgain(asked) : true
    })
  }

  /** Returns whether a response varies with `Prefer`. Only cacheable responses must say so. */
  varies({ method }: HttpRequest): boolean {
    return this.#setup.admit !== 'always' && (method === 'GET' || method === 'HEAD')
  }

  async take(asked: AdmissionRequest<Native>): Promise<Taken> {
    const { native, request } = asked
    const key = this.#keyOf(request)
    if (typeof key === 'object') return taken(key)
    const { queue, headers, toJob } = this.#setup
    const identity = await this.#identityOf(asked)
    if (identity === undefined) return taken(problem(403, { detail: nobodys }))
    const body = await readBody(request, this.#setup.maxBodyBytes)
    if (body.outcome !== 'read') return bodyProblem(body.outcome)
    const envelope = envelopeOf(request, { headers, body, identity: queue.digestOf(identity) })
    const payload = toJob ? await toJob(envelope, native) : envelope
    const fingerprint = key === undefined ? undefined : fingerprintOf(envelope)
    const job = { identity, payload, idempotencyKey: key, fingerprint }
    const result = await orUnavailable(() => queue.enqueue(job))
    if ('headers' in result) return taken(result)
    if (!('id' in result)) return notEnqueued(result)
    const answer = taken(await this.#answer(result, job, asked))
    const isKnown = result.outcome === 'known'
    // A 409 is not the job's answer.
    return { ...answer, isNew: !isKnown, isKnown: isKnown && answer.status !== 409 }
  }

  /** Returns whether a passing request was queued before. The application must not serve it too. */
  #takesAgain(asked: AdmissionRequest<Native>): MaybePromise<boolean | Taken> {
    const key = this.#keyOf(asked.request)
    if (key === undefined) return false
    return typeof key === 'string' ? this.#hasTaken(key, asked) : taken(key)
  }

  async #hasTaken(key: string, asked: AdmissionRequest<Native>): Promise<boolean | Taken> {
    const identity = await this.#identityOf(asked)
    if (identity === undefined) return false
    const id = await orUnavailable(() => this.#setup.queue.find(identity, key))
    return typeof id === 'object' ? taken(id) : id !== undefined
  }

  /** Accepts a request that only soft limits deny, and answers a request that was queued before. */
  #takesDenied(asked: AdmissionRequest<Native>, decision: Decision): MaybePromise<boolean | Taken> {
    const { admit, soft } = this.#setup
    if (!isSoft(decision, undefined)) return false
    const takesNew = admit === 'overflow' && isSoft(decision, soft)
    const key = this.#keyOf(asked.request)
    return typeof key === 'string' ? this.#deniedAgain(key, asked, takesNew) : takesNew
  }

  /**
   * Answers a denied request that was queued before. Lookups at the broker are limited, so that
   * denials stay cheap. While the broker fails, every request counts as new.
   */
  async #deniedAgain(
    key: string,
    asked: AdmissionRequest<Native>,
    otherwise: boolean,
  ): Promise<boolean | Taken> {
    const { queue } = this.#setup
    const identity = await this.#identityOf(asked)
    if (identity === undefined) return otherwise
    if (!(await this.#lookups.consume(identity)).allowed) return otherwise
    const id = await orWithout(() => queue.find(identity, key), undefined)
    if (id === undefined) return otherwise
    const answer = await this.take(asked)
    return answer.isKnown ? answer : false
  }

  #identityOf({ native, request }: AdmissionRequest<Native>): MaybePromise<string | undefined> {
    return this.#setup.queue.identityOf(native, request)
  }

  /** Answers for an accepted job. No later error makes it fail. */
  async #answer(
    { id, outcome, retryAfterMs: expectedWaitMs }: Extract<EnqueueResult, { id: string }>,
    { identity }: JobRequest,
    asked: AdmissionRequest<Native>,
  ): Promise<JobAnswer> {
    const { queue, monitor, idempotency } = this.#setup
    const isKnown = outcome === 'known'
    const known = isKnown ? await orWithout(() => queue.status(id, identity), undefined) : undefined
    if (known && !isOpen(known)) return endedAnswer(known, this.#setup)
    if (known && idempotency.whileRunning === 'conflict') {
      const detail = 'A request with this Idempotency-Key is still being processed.'
      return problem(409, { detail }, retryIn(1_000))
    }
    const { respondAsync, waitMs = 0 } = parsePrefer(asked.request.header('prefer'))
    const ended = await this.#hold({ id, identity }, waitMs, asked)
    if (ended) return endedAnswer(ended, this.#setup)
    const accepted = acceptedAnswer({ id }, { monitor: `${monitor}/${id}`, expectedWaitMs })
    if (!respondAsync) return accepted
    return { ...accepted, headers: { ...accepted.headers, 'Preference-Applied': 'respond-async' } }
  }

  /** Returns the idempotency key of a request, or the answer to an invalid one. */
  #keyOf(request: HttpRequest): string | undefined | JobAnswer {
    const { required, strict: isStrict } = this.#setup.idempotency
    const header = request.header('idempotency-key')
    if (header === undefined) {
      return required ? problem(400, { detail: 'Idempotency-Key is missing.' }) : undefined
    }
    const key = parseIdempotencyKey(header, { isStrict })
    return (
      key ??
      problem(400, { detail: 'Idempotency-Key must be a quoted string of 1 to 256 characters.' })
    )
  }
}
