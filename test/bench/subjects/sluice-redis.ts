import { createLimiter, type Decision, type Limiter } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import { SimulatedClock } from '../harness/simulated-clock.ts'
import {
  type AlgorithmName,
  fillsAtOnce,
  holdsLeases,
  type PolicyOptions,
  policyFor,
} from './algorithm-policy.ts'
import type { OpenRedisSubject, RedisSetting, RedisSubject } from './redis-subject.ts'

export interface SluiceVariant {
  readonly algorithm: AlgorithmName
  /** How many policies of this algorithm every request has to pass. @default 1 */
  readonly policies?: number
  /** false: every denial is asked of Redis. @default true: as users get it, it is believed for a second */
  readonly rememberDenials?: boolean
}

/** Sluice, with the Redis store. */
export function sluiceRedis(variant: SluiceVariant): OpenRedisSubject {
  const { algorithm, policies = 1, rememberDenials = true } = variant
  const name = `sluice ${nameOf(variant)}`
  const prefix = `bench.${nameOf(variant).replaceAll(/[^a-z0-9-]+/g, '-')}`

  return async (setting) => {
    const client = await setting.connect()
    const subject = limiterOf(setting, { policies, algorithm }, (clock) =>
      redisStore(client, {
        prefix,
        clock,
        heartbeatMs: 0,
        ...(rememberDenials ? {} : { denialTtlMs: 0 }),
      }),
    )
    return {
      name,
      role: 'ours',
      prefix,
      ...subject,
      // bench.x:{tag}:policy:digest
      kindOf: (redisKey) => redisKey.split(':')[2] ?? '',
      ...(algorithm === 'sliding-log' && setting.traffic !== 'half'
        ? { recordedUnits: setting.limit * policies }
        : {}),
    }
  }
}

function nameOf(variant: SluiceVariant): string {
  const { algorithm, policies = 1, rememberDenials = true } = variant
  const special = rememberDenials ? '' : ' (denialTtlMs: 0)'
  return `${algorithm}${special}${policies > 1 ? ` × ${policies}` : ''}`
}

type MakeStore = (clock: 'server' | (() => number)) => ReturnType<typeof redisStore>

function limiterOf(
  setting: RedisSetting,
  { policies, algorithm }: { policies: number; algorithm: AlgorithmName },
  makeStore: MakeStore,
): Pick<RedisSubject, 'check' | 'fill'> {
  const { clock, traffic, limit } = setting
  const policy = policyFor(algorithm, setting)
  const names = Array.from({ length: policies }, (_, index) => `p${index + 1}`)
  const named: PolicyOptions[] = names.map((name) => ({ ...policy, name }))
  let storeError: unknown
  const open = (store: ReturnType<typeof redisStore>): Limiter =>
    createLimiter({
      store,
      policies: named,
      failureMode: 'closed',
      deadlineMs: 60_000,
      onStoreError: ({ error }) => {
        storeError = error
      },
    })

  /** Without this, a store that fails would be measured as the failure mode, which is fast. */
  function decidedByRedis(decision: Decision): Decision {
    if (decision.source === 'store') return decision
    throw new Error(`Redis did not decide: ${String(storeError)}`)
  }

  const limiter = open(makeStore(clock === 'server' ? 'server' : clock.read))
  const gives = holdsLeases(algorithm) && traffic !== 'denied'

  async function check(key: string): Promise<boolean> {
    if (clock !== 'server') clock.tick()
    const decision = decidedByRedis(await limiter.consume(key))
    if (gives) await limiter.release(decision)
    return decision.allowed
  }

  /** Unit by unit, with the time that lies between them; by the server's clock, up to now. */
  async function fill(key: string): Promise<void> {
    if (gives) return
    const units = traffic === 'half' ? Math.floor(limit / 2) : limit
    const stepMs = fillStepMs(algorithm, setting)
    const past = clock === 'server' ? new SimulatedClock(Date.now() - units * stepMs) : clock
    const filler = open(makeStore(past.read))
    for (let unit = 0; unit < units; unit++) {
      past.advance(stepMs)
      decidedByRedis(await filler.consume(key))
    }
  }

  return { check, fill }
}

/** Where requests are to be denied units lie close together, so that none expires while that is measured. */
function fillStepMs(algorithm: AlgorithmName, { traffic, limit, windowMs }: RedisSetting): number {
  if (fillsAtOnce(algorithm)) return 0
  return traffic === 'denied' ? 1 : windowMs / limit
}
