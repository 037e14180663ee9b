import { orDefault, wholeNumber } from '@sluice/core'

/** Options of all brokers: how much is kept of jobs that have ended. */
export interface KeptOptions {
  /** Dead letters that are kept; the oldest go first. A whole number ≥ 0. @default 10_000 */
  maxDeadLetters?: number | undefined
  /**
   * Outcomes of other jobs that are kept, within their retention; the oldest go first, and their
   * idempotency keys with them.
   * @default 100_000
   */
  maxKept?: number | undefined
  /**
   * Most bytes of all outcomes, and of all dead letters: results, errors, payloads of dead letters,
   * and about 2,000 for each job. The oldest go first. A single longer one is not kept. A whole
   * number ≥ 0.
   * @default 50_000_000
   */
  maxKeptBytes?: number | undefined
}

/** The checked options, with the defaults filled in. */
export type KeptBounds = { readonly [option in keyof KeptOptions]-?: number }

/**
 * Bytes that an ended job takes beside its texts. In Redis these are BullMQ's fields, the record of
 * its idempotency key, and its counters.
 */
export const bytesOfEnded = 2_000

export function keptBounds(options: KeptOptions): KeptBounds {
  const count = (option: keyof KeptOptions, otherwise: number): number =>
    wholeNumber(orDefault(options[option], otherwise), { option }, { min: 0 })
  return {
    maxDeadLetters: count('maxDeadLetters', 10_000),
    maxKept: count('maxKept', 100_000),
    maxKeptBytes: count('maxKeptBytes', 50_000_000),
  }
}
