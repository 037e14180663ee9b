import {
  checkedElsewhere,
  checkSecret,
  countOption,
  type Duration,
  durationOption,
  functionOption,
  type MaybePromise,
  type Option,
  type OptionsOf,
  type RequiredOption,
  readOptions,
  type SettingsOf,
  warnOnce,
  windowMsOf,
} from '@sluice/core'
import { checkResolver, type KeyResolver } from '@sluice/http'
import { type Broker, brokerOf } from './broker.ts'
import { QueueObserverTable } from './event.ts'
import type { JobStatus } from './job.ts'

/** The options of `createQueue`. */
class QueueTable<Native> extends QueueObserverTable {
  /** Broker that stores the jobs. */
  broker: RequiredOption<Broker> = brokerOf
  /** Maximum number of waiting and running jobs: a whole number ≥ 1. @default 1_000 */
  maxDepth?: Option<number, number> = countOption(1_000, { min: 1 })
  /**
   * Maximum number of one identity's waiting and running jobs, so that no identity fills the queue
   * alone. @default a tenth of maxDepth, rounded up
   */
  maxDepthPerIdentity?: Option<number> = checkedElsewhere
  /** Maximum time that a job waits before it expires. @default '1h' */
  maxAge?: Option<Duration, number> = durationOption('1h', windowMsOf)
  /** Time for which the outcome and idempotency key of a finished job are kept. @default '1h' */
  retention?: Option<Duration, number> = durationOption('1h', windowMsOf)
  /** Maximum size of a job as JSON, in bytes. @default 100_000 */
  maxJobBytes?: Option<number, number> = countOption(100_000, { min: 100, max: 100_000_000 })
  /**
   * Resolves the owner of the jobs that a request creates, reads or cancels. `createAdmission` and
   * `statusMonitor` need it: use the limits' `key`. A request without a key has no jobs. With
   * `firstOf(apiKey({ verify }), ip())` it has the jobs of its address, which many users may share.
   * @default none
   */
  identity?: Option<KeyResolver<Native>> = (resolver, option) => {
    if (resolver !== undefined) checkResolver(resolver, option)
    return resolver
  }
  /**
   * Secret for the digests of identities in jobs, so that nobody can guess the identities. All
   * processes need the same secret.
   * @default none
   */
  secret?: Option<string> = (secret) => {
    checkSecret(secret, 'createQueue')
    return secret
  }
  /**
   * Returns the URL of a finished job's result. The monitor redirects clients to it with 303.
   * @default the result itself, with 200
   */
  resultUrl?: Option<FindResultUrl> = functionOption('a function of the job')
}

export interface QueueOptions<Native = unknown> extends OptionsOf<QueueTable<Native>> {}

/** The checked options of a queue, with the defaults filled in. Durations are in ms. */
export interface QueueSetup<Native> extends SettingsOf<QueueTable<Native>> {
  readonly maxDepthPerIdentity: number
}

export function setUpQueue<Native>(options: QueueOptions<Native>): QueueSetup<Native> {
  const settings = readOptions(new QueueTable<Native>(), options, 'createQueue')
  const { broker, secret, maxDepth } = settings
  if (broker.isShared && secret === undefined && process.env.NODE_ENV === 'production') {
    warnOnce(
      'createQueue has no secret: anyone who can read jobs can guess identities such as IPs; set { secret }, the same in all processes',
    )
  }
  const ofIdentity = countOption(Math.ceil(maxDepth / 10), { min: 1, max: maxDepth })
  return {
    ...settings,
    maxDepthPerIdentity: ofIdentity(settings.maxDepthPerIdentity, 'maxDepthPerIdentity'),
  }
}

/** Returns the URL of a job's result. */
export type FindResultUrl = (job: JobStatus) => MaybePromise<string | undefined>

/** Characters that RFC 3986 allows in a URI reference. None of them ends a header or a link. */
const referenceCharacters = /^[\w.~:/?#[\]@!$&'()*+,;=%-]+$/

/**
 * Calls the user's function for a result's URL. A value that is not a URL is not sent to clients.
 */
export async function resultUrlOf(
  find: FindResultUrl | undefined,
  job: JobStatus,
): Promise<string | undefined> {
  const url: unknown = await find?.(job)
  if (url === undefined || isReference(url)) return url
  warnOnce(
    'resultUrl must return a URL, absolute or relative, or undefined; the result itself was sent',
  )
  return undefined
}

function isReference(url: unknown): url is string {
  return (
    typeof url === 'string' &&
    referenceCharacters.test(url) &&
    URL.canParse(url, 'http://localhost')
  )
}
