import { longestGrantMs } from '../algorithms/grant.ts'
import {
  type AlgorithmName,
  algorithmNames,
  type Counting,
  type CountingName,
} from '../algorithms/table.ts'
import { type Duration, durationMs } from '../options/duration.ts'
import { flag, invalid } from '../options/options.ts'

/** The counting beside held units of the algorithms that may have grants. */
export const besideGrants: { readonly [name in CountingName]?: Counting } = {
  'sliding-log': 'granted-log',
}

/** In ms: a grant with a shorter life would end before its answer comes. */
const shortestMs = 10

/** The share of the window that reserved units live for, before they are renewed. */
const reserveShare = 1 / 20

/** The algorithms whose units work can reserve: the units keep their place in the window. */
const reservable: ReadonlySet<AlgorithmName> = new Set(['sliding-log', 'fixed-window'])

/** Tells whether work can reserve units of a policy with this algorithm. */
export function mayReserve(algorithm: AlgorithmName): boolean {
  return reservable.has(algorithm)
}

interface GrantOptions {
  prefetch?: Duration | undefined
  reserve?: boolean | undefined
  countDenied?: boolean | undefined
  async?: object | undefined
}

/** The counting of a policy, and the lives of the units that processes hold of it. */
interface Grants {
  readonly counting: Counting
  /** Life of a grant, in ms; 0 for a policy without grants. */
  readonly prefetchMs: number
  /** Life of the units that work reserves, in ms; 0 for a policy without `reserve`. */
  readonly reserveMs: number
}

interface Counted {
  readonly algorithm: AlgorithmName
  readonly windowMs: number
}

/**
 * Checks the options `prefetch` and `reserve`.
 * @throws SluiceError when one is out of range, or the policy cannot have it
 */
export function grantsOf(
  options: GrantOptions,
  counted: Counted,
  at: (field: string) => string,
): Grants {
  const { algorithm } = counted
  const prefetchMs = prefetchMsOf(options, counted, at('prefetch'))
  const reserveMs = reserveMsOf(options, counted, at('reserve'))
  const counting = prefetchMs > 0 || reserveMs > 0 ? besideGrants[algorithm] : undefined
  return { counting: counting ?? algorithm, prefetchMs, reserveMs }
}

function prefetchMsOf(
  { prefetch, countDenied }: GrantOptions,
  { algorithm, windowMs }: Counted,
  option: string,
): number {
  if (prefetch === undefined) return 0
  const refusal = (legal: string) => invalid({ option }, prefetch, legal)
  const prefetchMs = durationMs(prefetch, option)
  if (!besideGrants[algorithm]) {
    const names = Object.keys(besideGrants).join("', '")
    throw refusal(`left out with algorithm '${algorithm}': only '${names}' has it`)
  }
  if (countDenied) throw refusal('left out beside countDenied, which charges every denial at once')
  const longestMs = longestGrantMs(windowMs)
  const least = `a window below ${10 * shortestMs} ms: it may be a tenth of the window at most`
  if (longestMs < shortestMs) throw refusal(`left out with ${least}`)
  if (prefetchMs >= shortestMs && prefetchMs <= longestMs) return prefetchMs
  throw refusal(`${shortestMs} ms to a tenth of the window (${longestMs} ms)`)
}

function reserveMsOf(
  { reserve, countDenied, async }: GrantOptions,
  { algorithm, windowMs }: Counted,
  option: string,
): number {
  if (!flag(reserve, { option }, false)) return 0
  const refusal = (legal: string) => invalid({ option }, reserve, legal)
  if (!mayReserve(algorithm)) {
    const names = algorithmNames.filter(mayReserve).join("' and '")
    throw refusal(`left out with algorithm '${algorithm}': only '${names}' have it`)
  }
  if (countDenied) throw refusal('left out beside countDenied, which charges every denial at once')
  if (async) throw refusal('left out beside async, which may go beyond the limit')
  const lifeMs = Math.floor(windowMs * reserveShare)
  if (lifeMs >= shortestMs) return lifeMs
  throw refusal(`left out with a window below ${shortestMs / reserveShare} ms`)
}
