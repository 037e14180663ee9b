import type { AlgorithmName } from './algorithms/names.ts'
import { durationMs } from './duration.ts'
import { given, invalid, oneOf, wholeNumber } from './options.ts'
import type { PolicyFields } from './policy.ts'

/** What only some algorithms know, with neutral values for the others. */
export interface AlgorithmSettings {
  /** `fixed-window`: whether windows start at multiples of `windowMs` since the epoch. */
  readonly clockAligned: boolean
  /** `sliding-log`: recorded times are rounded up to multiples of this. */
  readonly resolutionMs: number
  /** `token-bucket`: the units that it holds; `undefined`: as many as the limit in force. */
  readonly burst: number | undefined
  /** `leaky-bucket`: the most units that wait; `Infinity` where only `maxDelayMs` bounds them. */
  readonly queue: number
  /** `leaky-bucket`: the longest wait. */
  readonly maxDelayMs: number
  /** `concurrency`: the wait that a refused client is told. */
  readonly retryMs: number
  /** `penalty`: what strikes lead to; `undefined` where none are counted. */
  readonly penalty: PenaltySettings | undefined
}

/** How long a key is blocked that has collected its strikes. */
export interface PenaltySettings {
  readonly forMs: number
  /** What each further block is longer by. */
  readonly factor: number
  readonly maxMs: number
}

type AlgorithmField =
  | 'align'
  | 'resolution'
  | 'burst'
  | 'queue'
  | 'maxDelay'
  | 'lease'
  | 'retryAfter'

const owners: { readonly [field in AlgorithmField]: AlgorithmName } = {
  align: 'fixed-window',
  resolution: 'sliding-log',
  burst: 'token-bucket',
  queue: 'leaky-bucket',
  maxDelay: 'leaky-bucket',
  lease: 'concurrency',
  retryAfter: 'concurrency',
}

export const algorithmFields: readonly AlgorithmField[] = Object.keys(owners) as AlgorithmField[]

/** The longest that a timer of JavaScript can run. */
const longestDelayMs = 2 ** 31 - 1

/**
 * Checks the options that belong to single algorithms.
 * @throws SluiceError for one that is out of range, or that the algorithm does not know
 */
export function algorithmSettings(
  options: PolicyFields,
  { algorithm, windowMs }: { algorithm: AlgorithmName; windowMs: number },
  at: (field: string) => string,
): AlgorithmSettings {
  for (const field of algorithmFields) {
    const owner = owners[field]
    if (options[field] === undefined || owner === algorithm) continue
    const legal = `left out with algorithm '${algorithm}': only '${owner}' has it`
    throw invalid({ option: at(field) }, options[field], legal)
  }
  return {
    clockAligned:
      options.align !== undefined &&
      oneOf(options.align, { option: at('align') }, ['clock']) === 'clock',
    resolutionMs: resolution(options, windowMs, at('resolution')),
    burst: optionalUnits(options.burst, { option: at('burst') }, 1),
    queue: optionalUnits(options.queue, { option: at('queue') }, 0) ?? Number.POSITIVE_INFINITY,
    maxDelayMs: maxDelay(options, at('maxDelay')),
    retryMs: durationMs(given(options.retryAfter, '1s'), at('retryAfter')),
    penalty: undefined,
  }
}

function optionalUnits(value: unknown, place: { option: string }, min: number): number | undefined {
  return value === undefined ? undefined : wholeNumber(value, place, { min })
}

function maxDelay({ maxDelay: value, queue }: PolicyFields, option: string): number {
  if (value === undefined) return queue === undefined ? 30_000 : longestDelayMs
  const maxDelayMs = durationMs(value, option)
  if (maxDelayMs <= longestDelayMs) return maxDelayMs
  throw invalid({ option }, value, `at most ${longestDelayMs} ms (24 days), the longest timer`)
}

function resolution({ resolution: value }: PolicyFields, windowMs: number, option: string): number {
  if (value === undefined) return 1
  const resolutionMs = durationMs(value, option)
  if (resolutionMs <= windowMs) return resolutionMs
  throw invalid({ option }, value, `at most the window (${windowMs} ms)`)
}
