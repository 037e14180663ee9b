import { invalid, orDefault } from '@sluice/core'
import { checkFunction, whole } from '../checks.ts'

/** Options of all brokers. */
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

/** Options of the brokers that keep jobs in Redis. */
export interface SharedOptions extends KeptOptions {
  /** The name of the queue: letters, digits, `.`, `_` and `-`. @default 'jobs' */
  name?: string | undefined
  /**
   * The longest that enqueueing or a lookup may take, in ms, before it is an error: 1 to 60,000.
   * @default 2_000
   */
  deadlineMs?: number | undefined
  /**
   * Called for errors of the connections, which reconnect by themselves.
   * @default a warning, once for each message
   */
  onError?: ((error: Error) => void) | undefined
}

/** The checked bounds of what is kept, with the defaults filled in. */
export type KeptBounds = { readonly [option in keyof KeptOptions]-?: number }

/** The checked options, with the defaults filled in. */
export interface SharedSetup {
  readonly name: string
  readonly bounds: KeptBounds
  readonly deadlineMs: number
  readonly onError: ((error: Error) => void) | undefined
}

export const keptOptionNames: readonly (keyof KeptOptions)[] = [
  'maxDeadLetters',
  'maxKept',
  'maxKeptBytes',
]

export const sharedOptionNames: readonly (keyof SharedOptions)[] = [
  ...(['name', 'deadlineMs', 'onError'] as const),
  ...keptOptionNames,
]

/**
 * Bytes that an ended job takes beside its texts. In Redis these are BullMQ's fields, the record of
 * its idempotency key, and its counters.
 */
export const bytesOfEnded = 2_000

export function keptBounds(options: KeptOptions): KeptBounds {
  return {
    maxDeadLetters: whole(options, 'maxDeadLetters', { otherwise: 10_000, min: 0 }),
    maxKept: whole(options, 'maxKept', { otherwise: 100_000, min: 0 }),
    maxKeptBytes: whole(options, 'maxKeptBytes', { otherwise: 50_000_000, min: 0 }),
  }
}

export function sharedSetup(options: SharedOptions): SharedSetup {
  checkFunction(options, 'onError', 'a function of the error')
  return {
    name: nameOf(orDefault(options.name, 'jobs')),
    bounds: keptBounds(options),
    deadlineMs: whole(options, 'deadlineMs', { otherwise: 2_000, min: 1, max: 60_000 }),
    onError: options.onError,
  }
}

function nameOf(name: unknown): string {
  if (typeof name === 'string' && /^[A-Za-z0-9._-]{1,128}$/.test(name)) return name
  throw invalid({ option: 'name' }, name, "1 to 128 letters, digits, '.', '_' and '-'")
}
