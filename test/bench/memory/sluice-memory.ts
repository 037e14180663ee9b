import { type CheckLimiter, createCheckLimiter, memoryStore } from '@sluice/core'
import { collectMetrics, type Metrics } from '@sluice/metrics'
import {
  type AlgorithmName,
  fillsAtOnce,
  holdsLeases,
  policyFor,
} from '../subjects/algorithm-policy.ts'
import type { MemoryContender, MemorySetting } from './memory-subject.ts'

export function sluiceMemory(
  algorithm: AlgorithmName,
  policies = 1,
  observersOf: () => readonly Metrics[] = () => [],
): MemoryContender {
  return {
    ...describe(algorithm, policies),
    open(setting) {
      const limiter = open(algorithm, policies, setting, observersOf())
      const gives = holdsLeases(algorithm) && setting.traffic === 'allowed'
      return {
        check: async (key) => {
          const decision = await limiter.consume(key)
          if (gives) await limiter.release(decision)
          return decision.allowed
        },
      }
    },
  }
}

export const observeContenders: readonly MemoryContender[] = [
  {
    ...sluiceMemory('sliding-log', 1, () => [collectMetrics()]),
    name: 'with metrics and the busiest keys',
  },
  { ...sluiceMemory('sliding-log'), name: 'without metrics', role: 'reference' },
]

/** Sluice as its adapters call it: the answer is there at once, without a promise. */
export function sluiceDecide(algorithm: AlgorithmName): MemoryContender {
  const { name, ...rest } = describe(algorithm, 1)
  return {
    ...rest,
    name: `${name}, decide()`,
    open(setting) {
      const limiter = open(algorithm, 1, setting)
      const [policy] = limiter.policies
      if (!policy) throw new Error('a limiter without policies')
      return {
        check: (key) => {
          const decision = limiter.decide([{ policy, key, cost: 1, limit: policy.limit }])
          return 'allowed' in decision ? decision.allowed : decision.then(({ allowed }) => allowed)
        },
      }
    },
  }
}

function describe(algorithm: AlgorithmName, policies: number): Omit<MemoryContender, 'open'> {
  const name = `sluice ${algorithm}${policies > 1 ? ` × ${policies}` : ''}`
  return {
    name,
    role: 'ours',
    fill: fillsAtOnce(algorithm) || holdsLeases(algorithm) ? 'at once' : 'spread',
    recordsUnits: algorithm === 'sliding-log',
  }
}

function open(
  algorithm: AlgorithmName,
  policies: number,
  setting: MemorySetting,
  observers: readonly Metrics[] = [],
): CheckLimiter {
  const policy = policyFor(algorithm, setting)
  const names = Array.from({ length: policies }, (_, index) => `p${index + 1}`)
  return createCheckLimiter({
    // The peers hold as many keys as come. The default cap is for attacks, and not for what is measured here.
    store: memoryStore({ maxKeys: 4 * policies * setting.keys + 1_000 }),
    policies: names.map((name) => ({ ...policy, name })),
    observers,
  })
}
