import { invalid, orDefault, wholeNumber } from '@sluice/core'
import { type KeptBounds, type KeptOptions, keptBounds } from '../kept-bounds.ts'

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

/** The checked options, with the defaults filled in. */
export interface SharedSetup extends KeptBounds {
  readonly name: string
  readonly deadlineMs: number
  readonly onError: ((error: Error) => void) | undefined
}

export const sharedOptionNames: readonly (keyof SharedOptions)[] = [
  'name',
  'maxDeadLetters',
  'maxKept',
  'maxKeptBytes',
  'deadlineMs',
  'onError',
]

export function sharedSetup(options: SharedOptions): SharedSetup {
  const { onError } = options
  const deadlineMs = orDefault(options.deadlineMs, 2_000)
  if (onError !== undefined && typeof onError !== 'function') {
    throw invalid({ option: 'onError' }, onError, 'a function of the error')
  }
  return {
    name: nameOf(orDefault(options.name, 'jobs')),
    ...keptBounds(options),
    deadlineMs: wholeNumber(deadlineMs, { option: 'deadlineMs' }, { min: 1, max: 60_000 }),
    onError,
  }
}

function nameOf(name: unknown): string {
  if (typeof name === 'string' && /^[A-Za-z0-9._-]{1,128}$/.test(name)) return name
  throw invalid({ option: 'name' }, name, "1 to 128 letters, digits, '.', '_' and '-'")
}
