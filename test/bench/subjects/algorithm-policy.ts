import { type AlgorithmName, algorithmNames, type createLimiter } from '@sluice/core'
import { algorithms } from '@sluice/core/backend'
import { testedAlgorithms } from '../../stores/algorithm-policy.ts'

export { type AlgorithmName, algorithmNames }

export type PolicyOptions = NonNullable<Parameters<typeof createLimiter>[0]['policies']>[number]

export interface Quota {
  readonly limit: number
  readonly windowMs: number
}

export function policyFor(algorithm: AlgorithmName, { limit, windowMs }: Quota): PolicyOptions {
  if (algorithm === 'concurrency') return { algorithm, limit, lease: windowMs }
  return { algorithm, limit, window: windowMs, ...testedAlgorithms[algorithm].atOnce?.(limit) }
}

/** Whether its units are leases, which are given back at the end of a request and have no window. */
export function holdsLeases(algorithm: AlgorithmName): boolean {
  return algorithms[algorithm].counts === 'leases'
}

/** Whether a key fills up only when units come at once: taken at the rate of the limit they drain as fast as they come. */
export function fillsAtOnce(algorithm: AlgorithmName): boolean {
  return algorithms[algorithm].capacityLevel !== undefined
}
