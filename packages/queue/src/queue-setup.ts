import { durationMs, given, invalid, knownFields, wholeNumber } from '@sluice/core'
import { ip, type KeyResolver } from '@sluice/http'
import type { Broker } from './broker.ts'
import { brokerOf } from './broker-option.ts'
import type { QueueOptions } from './queue.ts'

/** The checked options of a queue, with the defaults filled in. */
export interface QueueSetup<Native> {
  readonly broker: Broker
  readonly maxDepth: number
  readonly maxDepthPerIdentity: number
  readonly maxAgeMs: number
  readonly retentionMs: number
  readonly maxJobBytes: number
  readonly identity: KeyResolver<Native>
}

const queueFields: readonly (keyof QueueOptions)[] = [
  'broker',
  'maxDepth',
  'maxDepthPerIdentity',
  'maxAge',
  'retention',
  'maxJobBytes',
  'identity',
  'onEvent',
]

/** Ten years: beyond that no date is meant. */
const longestMs = 3_650 * 86_400_000

export function setUpQueue<Native>(options: QueueOptions<Native>): QueueSetup<Native> {
  knownFields(options, 'createQueue', queueFields)
  const { identity = ip(), onEvent } = options
  if (typeof identity !== 'function') {
    const legal = 'a resolver such as apiKey(), or a function of the request'
    throw invalid({ option: 'identity' }, identity, legal)
  }
  if (onEvent !== undefined && typeof onEvent !== 'function') {
    throw invalid({ option: 'onEvent' }, onEvent, 'a function')
  }
  const maxDepth = wholeNumber(given(options.maxDepth, 1_000), { option: 'maxDepth' }, { min: 1 })
  return {
    broker: brokerOf(options.broker),
    maxDepth,
    maxDepthPerIdentity: wholeNumber(
      given(options.maxDepthPerIdentity, Math.ceil(maxDepth / 10)),
      { option: 'maxDepthPerIdentity' },
      { min: 1, max: maxDepth },
    ),
    maxAgeMs: boundedMs(given(options.maxAge, '1h'), 'maxAge'),
    retentionMs: boundedMs(given(options.retention, '1h'), 'retention'),
    maxJobBytes: wholeNumber(
      given(options.maxJobBytes, 100_000),
      { option: 'maxJobBytes' },
      { min: 100, max: 100_000_000 },
    ),
    identity,
  }
}

function boundedMs(value: unknown, option: string): number {
  const valueMs = durationMs(value, option)
  if (valueMs <= longestMs) return valueMs
  throw invalid({ option }, value, "at most ten years ('3650d')")
}
