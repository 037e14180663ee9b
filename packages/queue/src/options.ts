import {
  given,
  invalid,
  knownFields,
  type MaybePromise,
  warnOnce,
  wholeNumber,
  windowMsOf,
} from '@sluice/core'
import { checkResolver, type KeyResolver } from '@sluice/http'
import { type Broker, brokerOf } from './broker.ts'
import type { JobStatus } from './job.ts'
import type { QueueOptions } from './queue.ts'

/** The checked options of a queue, with the defaults filled in. */
export interface QueueSetup<Native> {
  readonly broker: Broker
  readonly maxDepth: number
  readonly maxDepthPerIdentity: number
  readonly maxAgeMs: number
  readonly retentionMs: number
  readonly maxJobBytes: number
  readonly identity: KeyResolver<Native> | undefined
  readonly secret: string | undefined
  readonly resultUrl: FindResultUrl | undefined
}

const queueFields: readonly (keyof QueueOptions)[] = [
  'broker',
  'maxDepth',
  'maxDepthPerIdentity',
  'maxAge',
  'retention',
  'maxJobBytes',
  'identity',
  'secret',
  'resultUrl',
  'onEvent',
]

export function setUpQueue<Native>(options: QueueOptions<Native>): QueueSetup<Native> {
  knownFields(options, 'createQueue', queueFields)
  const { identity, secret, resultUrl, onEvent } = options
  if (identity !== undefined) checkResolver(identity, 'identity')
  if (secret !== undefined && (typeof secret !== 'string' || secret === '')) {
    // Not shown: it may be most of a secret.
    throw invalid({ option: 'secret' }, typeof secret, 'a non-empty text')
  }
  if (resultUrl !== undefined && typeof resultUrl !== 'function') {
    throw invalid({ option: 'resultUrl' }, resultUrl, 'a function of the job')
  }
  if (onEvent !== undefined && typeof onEvent !== 'function') {
    throw invalid({ option: 'onEvent' }, onEvent, 'a function')
  }
  const broker = brokerOf(options.broker)
  if (broker.isShared && secret === undefined) warnAboutGuessableIdentities()
  const maxDepth = wholeNumber(given(options.maxDepth, 1_000), { option: 'maxDepth' }, { min: 1 })
  return {
    broker,
    maxDepth,
    maxDepthPerIdentity: wholeNumber(
      given(options.maxDepthPerIdentity, Math.ceil(maxDepth / 10)),
      { option: 'maxDepthPerIdentity' },
      { min: 1, max: maxDepth },
    ),
    maxAgeMs: windowMsOf(given(options.maxAge, '1h'), 'maxAge'),
    retentionMs: windowMsOf(given(options.retention, '1h'), 'retention'),
    maxJobBytes: wholeNumber(
      given(options.maxJobBytes, 100_000),
      { option: 'maxJobBytes' },
      { min: 100, max: 100_000_000 },
    ),
    identity,
    secret,
    resultUrl,
  }
}

function warnAboutGuessableIdentities(): void {
  if (process.env.NODE_ENV !== 'production') return
  warnOnce(
    'createQueue has no secret: whoever can read jobs can guess identities such as IPs; set { secret }, the same in all processes',
  )
}

export type FindResultUrl = (job: JobStatus) => MaybePromise<string | undefined>

/** What RFC 3986 lets stand in a reference: no control character, and no other that ends a header or a link. */
const referenceCharacters = /^[\w.~:/?#[\]@!$&'()*+,;=%-]+$/

/** Where the result of a job is, as a function of the user's says; what is no URL is not passed on to clients. */
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
