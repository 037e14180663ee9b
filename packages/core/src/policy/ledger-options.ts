import { longestGrantMs } from '../algorithms/grant.ts'
import { type AlgorithmName, algorithmNames, algorithms } from '../algorithms/table.ts'
import type { Policy } from '../model/policy.ts'
import { type Duration, durationMs } from '../options/duration.ts'
import { flag, invalid, knownFields, wholeNumber } from '../options/options.ts'

/** Decisions from the last known state of a key. */
export interface AsyncOptions {
  /**
   * Units of one key that one process may admit before the store has confirmed that it counts them:
   * a whole number from 1 to the limit.
   */
  maxUncounted: number
}

/** The counting method with held units, for algorithms that support grants. */
export const besideGrants: { readonly [name in Policy['algorithm']]?: Policy['counting'] } = {
  'sliding-log': 'granted-log',
}

/** In ms: a shorter grant would end before its answer arrives. */
export const shortestMs = 10

/** Lifetime of reserved units before renewal, as a share of the window. */
const reserveShare = 1 / 20

/** Algorithms that support `reserve`: their units keep their place in the window. */
const reservable: ReadonlySet<AlgorithmName> = new Set(['sliding-log', 'fixed-window'])

/** Returns whether units of a policy with this algorithm can be reserved. */
export function mayReserve(algorithm: AlgorithmName): boolean {
  return reservable.has(algorithm)
}

/**
 * Returns whether an algorithm counts every unit charged beyond the limit. A bucket does not: it is
 * full, and further charges would be admitted on top, again and again.
 */
export function countsBeyond(name: AlgorithmName): boolean {
  const { counts, capacityLevel } = algorithms[name]
  return counts === 'units' && capacityLevel === undefined
}

interface LedgerOptions {
  prefetch?: Duration | undefined
  reserve?: boolean | undefined
  async?: AsyncOptions | undefined
  countDenied?: boolean | undefined
}

interface Counted extends Pick<Policy, 'windowMs' | 'limit'> {
  readonly algorithm: AlgorithmName
}

const besideCountDenied = 'left out beside countDenied, which charges every denial at once'

/**
 * Checks `prefetch`, `reserve` and `async`: units admitted before the store counts them.
 * @throws SluiceError if one is out of range, or the policy does not support it
 */
export function ledgerSettings(
  options: LedgerOptions,
  { algorithm, windowMs, limit }: Counted,
  at: (field: string) => string,
): Pick<Policy, 'counting' | 'prefetchMs' | 'reserveMs' | 'maxUncounted'> {
  const { prefetch, reserve, async, countDenied } = options
  const refusal = (field: 'prefetch' | 'reserve' | 'async', legal: string) =>
    invalid({ option: at(field) }, options[field], legal)
  const prefetchMs = prefetchMsOf()
  const reserveMs = reserveMsOf()
  const counting = prefetchMs > 0 || reserveMs > 0 ? besideGrants[algorithm] : undefined
  return { counting: counting ?? algorithm, prefetchMs, reserveMs, maxUncounted: maxUncountedOf() }

  function prefetchMsOf(): number {
    if (prefetch === undefined) return 0
    const lifeMs = durationMs(prefetch, at('prefetch'))
    if (!besideGrants[algorithm]) {
      const names = Object.keys(besideGrants).join("', '")
      throw refusal('prefetch', `left out with algorithm '${algorithm}': only '${names}' has it`)
    }
    if (countDenied) throw refusal('prefetch', besideCountDenied)
    const longestMs = longestGrantMs(windowMs)
    const least = `a window below ${10 * shortestMs} ms: it may be at most a tenth of the window`
    if (longestMs < shortestMs) throw refusal('prefetch', `left out with ${least}`)
    if (lifeMs >= shortestMs && lifeMs <= longestMs) return lifeMs
    throw refusal('prefetch', `${shortestMs} ms to a tenth of the window (${longestMs} ms)`)
  }

  function reserveMsOf(): number {
    if (!flag(reserve, { option: at('reserve') }, false)) return 0
    if (!mayReserve(algorithm)) {
      const names = algorithmNames.filter(mayReserve).join("' and '")
      throw refusal('reserve', `left out with algorithm '${algorithm}': only '${names}' have it`)
    }
    if (countDenied) throw refusal('reserve', besideCountDenied)
    if (async) throw refusal('reserve', 'left out beside async, which may exceed the limit')
    const lifeMs = Math.floor(windowMs * reserveShare)
    if (lifeMs >= shortestMs) return lifeMs
    throw refusal('reserve', `left out with a window below ${shortestMs / reserveShare} ms`)
  }

  function maxUncountedOf(): number {
    if (async === undefined) return 0
    knownFields(async, at('async'), ['maxUncounted'])
    if (!countsBeyond(algorithm)) {
      const names = algorithmNames.filter(countsBeyond).join("', '")
      throw refusal('async', `left out with algorithm '${algorithm}': only '${names}' have it`)
    }
    if (countDenied) throw refusal('async', besideCountDenied)
    if (prefetch !== undefined)
      throw refusal('async', 'left out beside prefetch, which is exact: choose one of them')
    // A limit of 0 blocks everything, and may be raised while running.
    const max = Math.min(limit === 0 ? Number.POSITIVE_INFINITY : limit, Number.MAX_SAFE_INTEGER)
    return wholeNumber(async.maxUncounted, { option: at('async.maxUncounted') }, { min: 1, max })
  }
}
