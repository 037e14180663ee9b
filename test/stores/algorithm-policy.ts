import type { AlgorithmName, PolicyFields } from '@sluice/core'

/** Options that make a policy of any algorithm admit `limit` units at once, and then wait for a window, or a lease. */
export function algorithmPolicy(
  algorithm: AlgorithmName,
  { window, ...options }: PolicyFields & { limit: number },
): PolicyFields {
  if (algorithm === 'concurrency')
    return { ...options, algorithm, ...(window && { lease: window }) }
  const policy = { ...options, algorithm, ...(window && { window }) }
  // One request leaves at once, the others wait.
  return algorithm === 'leaky-bucket'
    ? { ...policy, queue: Math.max(0, options.limit - 1) }
    : policy
}
