import { randomUUID } from 'node:crypto'
import { errorText, type MaybePromise, noteRelease, SluiceError, sleep } from '@sluice/core'
import { type HttpRequest, resolveKey } from '@sluice/http'
import type { Broker, Cancelled, Depth } from './broker.ts'
import { digest } from './digest.ts'
import { emitterOf } from './event.ts'
import { isOpen, type JobStatus } from './job.ts'
import { jsonText } from './json-text.ts'
import { type QueueOptions, resultUrlOf, setUpQueue } from './options.ts'
import { waitEstimateOf } from './wait-estimate.ts'

/** A job to enqueue. */
export interface JobRequest {
  /** Identity that the job belongs to. */
  identity: string
  /** Payload for the handler: anything that fits into JSON. */
  payload: unknown
  /** Requests of one identity with the same key are one job. */
  idempotencyKey?: string | undefined
  /** Text that distinguishes two requests with the same idempotency key. @default the payload */
  fingerprint?: string | undefined
}

/**
 * - `enqueued`: it will be run
 * - `known`: the idempotency key belongs to an existing job
 * - `mismatch`: it belongs to a job with another fingerprint
 * - `full`: a bound is reached
 * - `too-large`: the job is longer than `maxJobBytes`
 */
export type EnqueueResult =
  | { readonly outcome: 'enqueued' | 'known'; readonly id: string; readonly retryAfterMs: number }
  | { readonly outcome: 'mismatch' | 'too-large' }
  | {
      readonly outcome: 'full'
      readonly bound: 'queue' | 'identity'
      /** Depth ÷ measured rate at which jobs end. */
      readonly retryAfterMs: number
    }

/** A bounded queue of jobs, each of which belongs to an identity. */
export interface Queue<Native = unknown> {
  readonly broker: Broker
  readonly maxJobBytes: number
  enqueue(job: JobRequest): Promise<EnqueueResult>
  /** Finds the id of the job with an idempotency key; `undefined` for an unknown key. */
  find(identity: string, idempotencyKey: string): Promise<string | undefined>
  /**
   * Reads the status of a job; `undefined` if the job is unknown, no longer kept, or belongs to
   * another identity.
   */
  status(id: string, identity: string): Promise<JobStatus | undefined>
  /** Cancels a job. Another identity's job counts as `unknown`. */
  cancel(id: string, identity: string): Promise<Cancelled>
  /** Reads the gauges of the queue, for metrics. */
  depth(): Promise<Depth>
  /** Estimates the time (ms) in which all jobs of the queue end, at the recent rate. */
  expectedWaitMs(): Promise<number>
  /** Waits until a job has ended or the time is up, and returns its status. */
  settled(id: string, identity: string, options: SettledOptions): Promise<JobStatus | undefined>
  /** True if the queue has the option `identity`, which requests need. */
  readonly identifies: boolean
  /**
   * Resolves the identity of a request; `undefined` for a request without a key, which has no jobs.
   */
  identityOf(native: Native, request: HttpRequest): MaybePromise<string | undefined>
  /** Returns the digest of an identity, as stored in jobs. */
  digestOf(identity: string): string
  /** Returns the URL of a finished job's result. */
  resultUrl(job: JobStatus): Promise<string | undefined>
}

/** Options of `settled`. */
export interface SettledOptions {
  timeoutMs: number
  /** Ends the wait early. */
  signal?: AbortSignal | undefined
}

/** Minimum and maximum time (ms) between two checks of an awaited job. */
const firstLookMs = 25
const slowestLookMs = 500

/**
 * Creates a queue.
 * @example
 * const queue = createQueue({ broker: memoryBroker(), maxDepth: 1_000 })
 * @throws SluiceError if an option is unknown, missing or out of range
 */
export function createQueue<Native = unknown>(options: QueueOptions<Native>): Queue<Native> {
  noteRelease('@sluice/queue')
  const setup = setUpQueue(options)
  const { broker, maxDepth, maxDepthPerIdentity, maxJobBytes } = setup
  const { maxAge: maxAgeMs, retention: retentionMs } = setup
  // An identity may be an API key, which must not appear in Redis or in a handler's log.
  const digestOf = (identity: string): string => digest(identity, setup.secret)
  const waitMs = waitEstimateOf(broker)
  const emit = emitterOf(broker, setup.observers)

  function onExpired(job: { readonly id: string; readonly enqueuedAt: number }): void {
    emit({ type: 'expired', id: job.id, waitMs: Date.now() - job.enqueuedAt })
  }

  async function status(id: string, identity: string): Promise<JobStatus | undefined> {
    const found = await broker.status(id)
    return found?.identity === digestOf(identity) ? found : undefined
  }

  return {
    broker,
    maxJobBytes,
    status,
    digestOf,
    find: (identity, idempotencyKey) => broker.find(digestOf(identity), idempotencyKey),
    resultUrl: (job) => resultUrlOf(setup.resultUrl, job),
    depth: () => broker.depth(),
    expectedWaitMs: () => waitMs('polling'),
    identifies: setup.identity !== undefined,
    identityOf: (native, request) => setup.identity && resolveKey(setup.identity, native, request),

    async enqueue({ identity, payload, idempotencyKey, fingerprint }) {
      const text = written(payload)
      if (Buffer.byteLength(text) > maxJobBytes) return { outcome: 'too-large' }
      const enqueuedAt = Date.now()
      const idempotency =
        idempotencyKey === undefined
          ? undefined
          : { key: idempotencyKey, fingerprint: fingerprint ?? digest(text) }
      const id = randomUUID()
      const answer = await broker.enqueue(
        {
          id,
          identity: digestOf(identity),
          payload: JSON.parse(text),
          enqueuedAt,
          expiresAt: enqueuedAt + maxAgeMs,
        },
        { maxDepth, maxDepthPerIdentity, retentionMs, idempotency, onExpired },
      )
      if (answer.outcome === 'mismatch') return answer
      if (answer.outcome === 'full') {
        emit({ type: 'refused', bound: answer.bound })
        return { ...answer, retryAfterMs: await waitMs('refused') }
      }
      if (answer.outcome === 'enqueued') emit({ type: 'enqueued', id: answer.id })
      return { ...answer, retryAfterMs: await waitMs('polling') }
    },

    async cancel(id, identity) {
      if (!(await status(id, identity))) return 'unknown'
      const outcome = await broker.cancel(id)
      if (outcome === 'cancelled') emit({ type: 'cancelled', id })
      return outcome
    },

    async settled(id, identity, { timeoutMs, signal }) {
      const until = Date.now() + timeoutMs
      for (let lookMs = firstLookMs; ; lookMs = Math.min(lookMs * 2, slowestLookMs)) {
        const found = await status(id, identity)
        const leftMs = until - Date.now()
        if (!found || !isOpen(found) || leftMs <= 0 || signal?.aborted) return found
        await sleep(Math.min(lookMs, leftMs), signal)
      }
    },
  }
}

function written(payload: unknown): string {
  try {
    return jsonText(payload)
  } catch (cause) {
    const message = `the payload cannot be serialised as JSON: ${errorText(cause)}`
    throw new SluiceError('SLUICE_PAYLOAD_INVALID', message, { cause })
  }
}
