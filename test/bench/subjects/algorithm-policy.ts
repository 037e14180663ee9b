import { algorithmNames, type createLimiter } from '@sluice/core'

export type AlgorithmName = (typeof algorithmNames)[number]

/** The options of one policy, as `createLimiter` takes them. */
export type PolicyOptions = NonNullable<Parameters<typeof createLimiter>[0]['policies']>[number]

export interface Quota {
  readonly limit: number
  readonly windowMs: number
}

/** What sets an algorithm apart for the benchmark; all that is said of single algorithms stands here. */
interface Manner {
  /** Options other than limit and window. */
  options?(quota: Quota): { queue: number }
  /** Whether its units are leases, which are given back at the end of a request and have no window. */
  readonly leases?: boolean
  /** Whether it fills up only when units come at once: taken at the rate of the limit they drain as fast as they come. */
  readonly drains?: boolean
}

const manners: { readonly [name: string]: Manner } = {
  'token-bucket': { drains: true },
  // A queue for as many as the others let pass at once: the one that goes on, and those that wait.
  'leaky-bucket': { drains: true, options: ({ limit }) => ({ queue: limit - 1 }) },
  concurrency: { leases: true },
}

export { algorithmNames }

export function policyFor(algorithm: AlgorithmName, quota: Quota): PolicyOptions {
  const { limit, windowMs } = quota
  if (algorithm === 'concurrency') return { algorithm, limit, lease: windowMs }
  return { algorithm, limit, window: windowMs, ...manners[algorithm]?.options?.(quota) }
}

export function holdsLeases(algorithm: AlgorithmName): boolean {
  return manners[algorithm]?.leases === true
}

/** Whether a key is filled by units that come at once, and not spread over the window. */
export function fillsAtOnce(algorithm: AlgorithmName): boolean {
  return manners[algorithm]?.drains === true
}
