import { type AlgorithmName, algorithmNames, algorithms } from '../algorithms/table.ts'
import type { Duration } from '../options/duration.ts'
import { invalid, knownFields, wholeNumber } from '../options/options.ts'

/** Decisions by the last known state of a key. */
export interface AsyncOptions {
  /**
   * Units of one key that one process may admit before the store has confirmed that it counts them:
   * a whole number from 1 to the limit.
   */
  maxUncounted: number
}

/**
 * Tells whether an algorithm counts every unit that is charged beyond the limit. A bucket does not:
 * it is full, and what is charged then would be admitted on top, again and again.
 */
export function countsBeyond(name: AlgorithmName): boolean {
  const { counts, capacityLevel } = algorithms[name]
  return counts === 'units' && capacityLevel === undefined
}

interface OptionsBeside {
  async?: AsyncOptions | undefined
  countDenied?: boolean | undefined
  prefetch?: Duration | undefined
}

/**
 * Checks the option `async`. Returns `maxUncounted`, or 0 without the option.
 * @throws SluiceError when it is out of range, or the policy cannot have it
 */
export function maxUncountedOf(
  { async, countDenied, prefetch }: OptionsBeside,
  { algorithm, limit }: { algorithm: AlgorithmName; limit: number },
  option: string,
): number {
  if (async === undefined) return 0
  const refusal = (legal: string) => invalid({ option }, async, legal)
  knownFields(async, option, ['maxUncounted'])
  if (!countsBeyond(algorithm)) {
    const names = algorithmNames
      .filter(countsBeyond)
      .map((name) => `'${name}'`)
      .join(', ')
    throw refusal(`left out with algorithm '${algorithm}': only ${names} have it`)
  }
  if (countDenied) throw refusal('left out beside countDenied, which charges every denial at once')
  if (prefetch !== undefined)
    throw refusal('left out beside prefetch, which is exact: choose one of them')
  // A limit of 0 blocks everything, and may be raised while running.
  const max = Math.min(limit === 0 ? Number.POSITIVE_INFINITY : limit, Number.MAX_SAFE_INTEGER)
  return wholeNumber(async.maxUncounted, { option: `${option}.maxUncounted` }, { min: 1, max })
}
