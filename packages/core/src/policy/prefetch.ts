import type { AlgorithmName, Counting, CountingName } from '../algorithms/table.ts'
import { longestGrantMs } from '../algorithms/grant.ts'
import { type Duration, durationMs } from '../options/duration.ts'
import { invalid } from '../options/options.ts'

/** The counting beside held units of the algorithms that may have grants. */
export const besideGrants: { readonly [name in CountingName]?: Counting } = {
  'sliding-log': 'granted-log',
}

/** A shorter grant would end before its answer comes. */
const shortestMs = 10

interface PrefetchOptions {
  prefetch?: Duration | undefined
  countDenied?: boolean | undefined
}

/** The counting of a policy, and the life of its grants. */
interface Prefetch {
  readonly counting: Counting
  /** Life of a grant, in ms; 0 for a policy without grants. */
  readonly prefetchMs: number
}

/**
 * Checks the option `prefetch`.
 * @throws SluiceError when it is out of range, or the policy cannot have grants
 */
export function prefetchOf(
  { prefetch, countDenied }: PrefetchOptions,
  { algorithm, windowMs }: { algorithm: AlgorithmName; windowMs: number },
  option: string,
): Prefetch {
  if (prefetch === undefined) return { counting: algorithm, prefetchMs: 0 }
  const refusal = (legal: string) => invalid({ option }, prefetch, legal)
  const prefetchMs = durationMs(prefetch, option)
  const counting = besideGrants[algorithm]
  if (!counting) {
    const names = Object.keys(besideGrants).join("', '")
    throw refusal(`left out with algorithm '${algorithm}': only '${names}' has it`)
  }
  if (countDenied) throw refusal('left out beside countDenied, which charges every denial at once')
  const longestMs = longestGrantMs(windowMs)
  const least = `a window below ${10 * shortestMs} ms: it may be a tenth of the window at most`
  if (longestMs < shortestMs) throw refusal(`left out with ${least}`)
  if (prefetchMs >= shortestMs && prefetchMs <= longestMs) return { counting, prefetchMs }
  throw refusal(`${shortestMs} ms to a tenth of the window (${longestMs} ms)`)
}
