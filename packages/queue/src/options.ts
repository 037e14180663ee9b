import {
  checkSecret,
  type Duration,
  knownFields,
  type MaybePromise,
  orDefault,
  warnOnce,
  windowMsOf,
} from '@sluice/core'
import { checkResolver, type KeyResolver } from '@sluice/http'
import { type Broker, brokerOf } from './broker.ts'
import { checkFunction, whole } from './checks.ts'
import { checkObservers, type QueueObserverOptions } from './event.ts'
import type { JobStatus } from './job.ts'

export interface QueueOptions<Native = unknown> extends QueueObserverOptions {
  /** Broker that keeps the jobs. */
  broker: Broker
  /** Jobs that may wait or run at once: a whole number ≥ 1. @default 1_000 */
  maxDepth?: number | undefined
  /**
   * Jobs of one identity that may wait or run at once, so that nobody fills the queue alone.
   * @default a tenth of maxDepth, rounded up
   */
  maxDepthPerIdentity?: number | undefined
  /** Longest wait of a job before it expires. @default '1h' */
  maxAge?: Duration | undefined
  /**
   * Time for which the outcome and the idempotency key of a job are kept after its end.
   * @default '1h'
   */
  retention?: Duration | undefined
  /** The longest job, as JSON, in bytes. @default 100_000 */
  maxJobBytes?: number | undefined
  /**
   * Resolves the owner of the jobs that a request makes, reads or cancels. `createAdmission` and
   * `statusMonitor` need it: use the `key` of the limits. A request without a key has no jobs. With
   * `firstOf(apiKey({ verify }), ip())` it has those of its address, which many users may share.
   * @default none
   */
  identity?: KeyResolver<Native> | undefined
  /**
   * Secret for the digests of identities in jobs, so that nobody can guess them. The same in all
   * processes.
   * @default none
   */
  secret?: string | undefined
  /**
   * Finds the URL of the result of a job that is done; the monitor redirects clients there with
   * 303.
   * @default the result itself, with 200
   */
  resultUrl?: FindResultUrl | undefined
}

/** The checked options of a queue, with the defaults filled in. */
export interface QueueSetup<Native>
  extends Pick<QueueOptions<Native>, 'identity' | 'secret' | 'resultUrl'> {
  readonly broker: Broker
  readonly maxDepth: number
  readonly maxDepthPerIdentity: number
  readonly maxAgeMs: number
  readonly retentionMs: number
  readonly maxJobBytes: number
}

const queueFields: readonly (keyof QueueOptions)[] = [
  ...(['broker', 'maxDepth', 'maxDepthPerIdentity', 'maxAge', 'retention', 'maxJobBytes'] as const),
  ...(['identity', 'secret', 'resultUrl', 'onEvent', 'observers'] as const),
]

export function setUpQueue<Native>(options: QueueOptions<Native>): QueueSetup<Native> {
  knownFields(options, 'createQueue', queueFields)
  const { identity, secret, resultUrl } = options
  if (identity !== undefined) checkResolver(identity, 'identity')
  checkSecret(secret, 'createQueue')
  checkFunction(options, 'resultUrl', 'a function of the job')
  checkObservers(options)
  const broker = brokerOf(options.broker)
  if (broker.isShared && secret === undefined && process.env.NODE_ENV === 'production') {
    warnOnce(
      'createQueue has no secret: whoever can read jobs can guess identities such as IPs; set { secret }, the same in all processes',
    )
  }
  const maxDepth = whole(options, 'maxDepth', { otherwise: 1_000, min: 1 })
  const ofIdentity = { otherwise: Math.ceil(maxDepth / 10), min: 1, max: maxDepth }
  const ofJob = { otherwise: 100_000, min: 100, max: 100_000_000 }
  return {
    broker,
    maxDepth,
    maxDepthPerIdentity: whole(options, 'maxDepthPerIdentity', ofIdentity),
    maxAgeMs: windowMsOf(orDefault(options.maxAge, '1h'), 'maxAge'),
    retentionMs: windowMsOf(orDefault(options.retention, '1h'), 'retention'),
    maxJobBytes: whole(options, 'maxJobBytes', ofJob),
    ...{ identity, secret, resultUrl },
  }
}

/** Finds the URL of the result of a job. */
export type FindResultUrl = (job: JobStatus) => MaybePromise<string | undefined>

/** The characters that RFC 3986 allows in a reference. None of them ends a header or a link. */
const referenceCharacters = /^[\w.~:/?#[\]@!$&'()*+,;=%-]+$/

/**
 * Finds the URL of a result by the user's function. A value that is no URL is not passed on to
 * clients.
 */
export async function resultUrlOf(
  find: FindResultUrl | undefined,
  job: JobStatus,
): Promise<string | undefined> {
  const url: unknown = await find?.(job)
  if (url === undefined || isReference(url)) return url
  warnOnce('resultUrl must yield a URL, absolute or not, or undefined; the result itself stood in')
  return undefined
}

function isReference(url: unknown): url is string {
  return (
    typeof url === 'string' &&
    referenceCharacters.test(url) &&
    URL.canParse(url, 'http://localhost')
  )
}
