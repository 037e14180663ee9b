import { algorithmNames } from '../subjects/algorithm-policy.ts'
import { expressRateLimitMemory } from './express-rate-limit-memory.ts'
import type { MemoryContender } from './memory-subject.ts'
import { rateLimiterFlexibleMemory } from './rate-limiter-flexible-memory.ts'
import { sluiceDecide, sluiceMemory } from './sluice-memory.ts'

/** Everybody who decides in memory; the worker finds its contender here by name. */
export const memoryContenders: readonly MemoryContender[] = [
  sluiceMemory('sliding-log'),
  sluiceDecide('sliding-log'),
  sluiceMemory('sliding-log', 2),
  sluiceMemory('sliding-log', 4),
  ...algorithmNames
    .filter((algorithm) => algorithm !== 'sliding-log')
    .map((algorithm) => sluiceMemory(algorithm)),
  expressRateLimitMemory,
  rateLimiterFlexibleMemory,
]
