import { invalid, knownFields } from '@sluice/core'
import {
  type SharedOptions,
  type SharedSetup,
  sharedOptionNames,
  sharedSetup,
} from '../redis/options.ts'
import { type Connect, connectOf } from './connection.ts'

/** Options of `bullmqBroker`. */
export interface BullmqBrokerOptions extends SharedOptions {
  /**
   * Redis of the broker: `redis://…`, the options of an ioredis connection, or a function that
   * makes a client, for a Cluster or node-redis. The broker opens its own connections, and ends
   * them.
   */
  connection: string | object | (() => object)
  /** Prefix of BullMQ's keys; in braces (`{bull}`) for a Cluster. @default 'bull' */
  prefix?: string | undefined
}

/** The checked options of a BullMQ broker, with the defaults filled in. */
export interface BullmqSetup extends SharedSetup {
  readonly prefix: string
  readonly connect: Connect
}

const optionNames: readonly (keyof BullmqBrokerOptions)[] = [
  'connection',
  'prefix',
  ...sharedOptionNames,
]

export function setUpBullmq(options: BullmqBrokerOptions): BullmqSetup {
  knownFields(options, 'bullmqBroker', optionNames)
  const { connection, prefix = 'bull' } = options
  if (typeof prefix !== 'string' || prefix === '') {
    throw invalid({ option: 'prefix' }, prefix, "a text, as in 'bull' or '{bull}'")
  }
  return { ...sharedSetup(options), prefix, connect: connectOf(connection, prefix) }
}
