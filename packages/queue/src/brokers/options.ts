import {
  countOption,
  type Option,
  observersOption,
  type SettingsOf,
  textOption,
} from '@sluice/core'

const queueName = textOption(
  'jobs',
  /^[A-Za-z0-9._-]{1,128}$/,
  "1 to 128 letters, digits, '.', '_' and '-'",
)

/** Options of all brokers. */
export class KeptTable {
  /**
   * Maximum number of dead letters: a whole number ≥ 0. The oldest are dropped first.
   * @default 10_000
   */
  maxDeadLetters?: Option<number, number> = countOption(10_000, { min: 0 })
  /**
   * Maximum number of outcomes kept for `retention`, not counting dead letters. The oldest are
   * dropped first, with their idempotency keys.
   * @default 100_000
   */
  maxKept?: Option<number, number> = countOption(100_000, { min: 0 })
  /**
   * Maximum size of all outcomes, and separately of all dead letters: results, errors, payloads of
   * dead letters, and about 2,000 bytes per job. The oldest are dropped first. A single longer one
   * is not kept. A whole number ≥ 0.
   * @default 50_000_000
   */
  maxKeptBytes?: Option<number, number> = countOption(50_000_000, { min: 0 })
}

/** An observer of a broker. An error in it is reported once as a warning, and changes nothing. */
export interface BrokerObservers {
  /** Called for connection errors. Connections are reopened automatically. */
  onError?(error: Error): void
}

/** Options of the brokers that keep jobs in Redis. */
export class SharedTable extends KeptTable {
  /** The name of the queue: letters, digits, `.`, `_` and `-`. @default 'jobs' */
  name?: Option<string, string> = queueName
  /**
   * Maximum time (ms) for an enqueue or a lookup: 1 to 60,000.
   * @default 2_000
   */
  deadlineMs?: Option<number, number> = countOption(2_000, { min: 1, max: 60_000 })
  /** An object with `onError`, or a list of such objects. @default one warning for each message */
  observers?: Option<BrokerObservers | readonly BrokerObservers[], readonly BrokerObservers[]> =
    observersOption<BrokerObservers>(['onError'])
}

/** The checked bounds of kept jobs, with the defaults filled in. */
export interface KeptBounds extends SettingsOf<KeptTable> {}

/** The checked options, with the defaults filled in. */
export interface SharedSetup extends SettingsOf<SharedTable> {}

/**
 * Overhead (bytes) of an ended job besides its contents. In Redis these are BullMQ's fields, the
 * idempotency record, and counters.
 */
export const bytesOfEnded = 2_000
