import { invalid, knownFields, wholeNumber } from '@sluice/core'
import { type KeptBounds, type KeptOptions, keptBounds } from '../kept-bounds.ts'
import { type Connect, connectOf } from './connection.ts'

export interface BullmqBrokerOptions extends KeptOptions {
  /**
   * Redis of the broker: `redis://…`, the options of an ioredis connection, or a function that
   * makes a client, for a Cluster or node-redis. The broker opens its own connections, and ends
   * them.
   */
  connection: string | object | (() => object)
  /** The name of BullMQ's queue: letters, digits, `.`, `_` and `-`. @default 'jobs' */
  name?: string
  /** Prefix of BullMQ's keys; in braces (`{bull}`) for a Cluster. @default 'bull' */
  prefix?: string
  /**
   * The longest that enqueueing or a lookup may take, in ms, before it is an error: 1 to 60,000.
   * @default 2_000
   */
  deadlineMs?: number
  /**
   * Called for errors of the connections, which reconnect by themselves.
   * @default a warning, once for each message
   */
  onError?: (error: Error) => void
}

/** The checked options of a BullMQ broker, with the defaults filled in. */
export interface BullmqSetup extends KeptBounds {
  readonly name: string
  readonly prefix: string
  readonly connect: Connect
  readonly deadlineMs: number
  readonly onError: ((error: Error) => void) | undefined
}

const optionNames: readonly (keyof BullmqBrokerOptions)[] = [
  'connection',
  'name',
  'prefix',
  'maxDeadLetters',
  'maxKept',
  'maxKeptBytes',
  'deadlineMs',
  'onError',
]

export function setUpBullmq(options: BullmqBrokerOptions): BullmqSetup {
  knownFields(options, 'bullmqBroker', optionNames)
  const { connection, name = 'jobs', prefix = 'bull', onError } = options
  const { deadlineMs = 2_000 } = options
  if (typeof name !== 'string' || !/^[A-Za-z0-9._-]{1,128}$/.test(name)) {
    throw invalid({ option: 'name' }, name, "1 to 128 letters, digits, '.', '_' and '-'")
  }
  if (typeof prefix !== 'string' || prefix === '') {
    throw invalid({ option: 'prefix' }, prefix, "a text, as in 'bull' or '{bull}'")
  }
  if (onError !== undefined && typeof onError !== 'function') {
    throw invalid({ option: 'onError' }, onError, 'a function of the error')
  }
  return {
    name,
    prefix,
    connect: connectOf(connection, prefix),
    ...keptBounds(options),
    deadlineMs: wholeNumber(deadlineMs, { option: 'deadlineMs' }, { min: 1, max: 60_000 }),
    onError,
  }
}
