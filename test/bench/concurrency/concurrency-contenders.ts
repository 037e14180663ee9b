import type { Contender } from '../harness/rounds.ts'
import { algorithmNames } from '../subjects/algorithm-policy.ts'
import { rateLimitRedis } from '../subjects/rate-limit-redis.ts'
import { rateLimiterFlexibleRedis } from '../subjects/rate-limiter-flexible-redis.ts'
import type { OpenRedisSubject } from '../subjects/redis-subject.ts'
import { type SluiceVariant, sluiceRedis } from '../subjects/sluice-redis.ts'

export interface ConcurrencyContender extends Contender {
  readonly open: OpenRedisSubject
  /** The limit, where it must not be reached. @default that of the case */
  readonly limit?: number
  /** It is measured where calls carry several checks. @default 1 */
  readonly minInFlight?: number
}

/** Never reached in a window of an hour, as those of the peers. */
const unreachable = 10_000_000

function ours(name: string, variant: SluiceVariant): ConcurrencyContender {
  return { name, role: 'ours', open: sluiceRedis(variant) }
}

function byClient(client: SluiceVariant['client'] & string): ConcurrencyContender {
  return ours(`sluice sliding-log by ${client}`, { algorithm: 'sliding-log', client })
}

export const contenders = {
  log: ours('sluice sliding-log', { algorithm: 'sliding-log' }),
  window: { ...ours('sluice fixed-window', { algorithm: 'fixed-window' }), limit: unreachable },
  twoLogs: {
    ...ours('sluice sliding-log × 2', { algorithm: 'sliding-log', policies: 2 }),
    minInFlight: 16,
  },
  rateLimitRedis: { name: 'rate-limit-redis', role: 'peer', open: rateLimitRedis },
  flexible: { name: 'rate-limiter-flexible', role: 'peer', open: rateLimiterFlexibleRedis() },
  flexibleBlocking: {
    name: 'rate-limiter-flexible (inMemoryBlock)',
    role: 'reference',
    open: rateLimiterFlexibleRedis({ inMemoryBlockOnConsumed: 1 }),
  },
  iovalkey: byClient('iovalkey'),
  nodeRedis: byClient('node-redis'),
  glide: byClient('GLIDE'),
  // Shown, and no peer.
  withoutResilience: {
    name: 'without limiter and resilience (store.apply)',
    role: 'reference',
    open: sluiceRedis({ algorithm: 'sliding-log', resilience: false }),
  },
} satisfies Record<string, ConcurrencyContender>

/** What all keys of a contender begin with. */
export function prefixOf({ name }: Contender): string {
  return `bench.${name.replaceAll(/[^a-zA-Z0-9-]+/g, '-')}`
}

/** The other algorithms, whose states have room, and more policies in one request. */
export const more: readonly ConcurrencyContender[] = [
  ...algorithmNames
    .filter((algorithm) => algorithm !== 'sliding-log' && algorithm !== 'fixed-window')
    .map((algorithm) => ({ ...ours(`sluice ${algorithm}`, { algorithm }), limit: unreachable })),
  ours('sluice sliding-log × 4', { algorithm: 'sliding-log', policies: 4 }),
]

export function contenderNamed(name: string | undefined): ConcurrencyContender {
  const all: readonly ConcurrencyContender[] = [...Object.values(contenders), ...more]
  const found = all.find((one) => one.name === name)
  if (!found) throw new Error(`there is no contender '${name}'`)
  return found
}
