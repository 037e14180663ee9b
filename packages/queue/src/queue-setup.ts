import { given, invalid, knownFields, warnOnce, wholeNumber, windowMsOf } from '@sluice/core'
import { checkResolver, type KeyResolver } from '@sluice/http'

import type { Broker } from './broker.ts'
import { brokerOf } from './broker-option.ts'
import type { QueueOptions } from './queue.ts'
import type { FindResultUrl } from './result-url.ts'

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
