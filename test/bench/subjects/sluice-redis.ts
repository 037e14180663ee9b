import { createLimiter, type Decision, type Limiter } from '@sluice/core'
import { redisStore, type UserClient } from '@sluice/redis'
import { GlideClient } from '@valkey/valkey-glide'
import { Redis as Iovalkey } from 'iovalkey'
import { createClient } from 'redis'
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
  /** false: the store is asked without the limiter, and so without deadline, breaker and fallback. @default true */
  readonly resilience?: boolean
  /** @default ioredis */
  readonly client?: keyof typeof clients
}

/** Clients besides ioredis. They are connected until their process ends. */
const clients = {
  iovalkey: async (port) => new Iovalkey(port),
  'node-redis': (port) => createClient({ socket: { port } }).connect(),
  GLIDE: (port) =>
    GlideClient.createClient({
      addresses: [{ host: '127.0.0.1', port }],
      // Filling the keys takes longer than its default of 250 ms.
      requestTimeout: 60_000,
    }),
} satisfies Record<string, (port: number) => Promise<UserClient>>

export function sluiceRedis(variant: SluiceVariant): OpenRedisSubject {
  const { algorithm, policies = 1, client: library } = variant
  return async (setting) => {
    const { prefix } = setting
    const ioredis = await setting.connect()
    const { port = 6379 } = ioredis.options
    const client = library ? await clients[library](port) : ioredis
    const subject = limiterOf(setting, variant, (clock) =>
      redisStore(client, { prefix, clock, heartbeatMs: 0 }),
    )
    return {
      ...{ prefix, ...subject },
      // prefix:{tag}:policy:digest
      kindOf: (redisKey) => redisKey.split(':')[2] ?? '',
      ...(algorithm === 'sliding-log' && { recordedUnits: setting.limit * policies }),
    }
  }
}

type MakeStore = (clock: 'server' | (() => number)) => ReturnType<typeof redisStore>

function limiterOf(
  setting: RedisSetting,
  { policies = 1, algorithm, resilience = true }: SluiceVariant,
  makeStore: MakeStore,
): Pick<RedisSubject, 'check' | 'fill' | 'fillSteadily'> {
  const { clock, traffic, limit, windowMs } = setting
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
      observers: {
        onStoreError: ({ error }) => {
          storeError = error
        },
      },
    })

  /** Without this, a store that fails would be measured as the failure mode, which is fast. */
  function decidedByRedis(decision: Decision): Decision {
    if (decision.source === 'store') return decision
    throw new Error(`Redis did not decide: ${String(storeError)}`)
  }

  const store = makeStore(clock === 'server' ? 'server' : clock.read)
  const limiter = open(store)
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
    const stepMs = fillStepMs(algorithm, setting)
    const past = clock === 'server' ? new SimulatedClock(Date.now() - limit * stepMs) : clock
    const filler = open(makeStore(past.read))
    for (let unit = 0; unit < limit; unit++) {
      past.advance(stepMs)
      decidedByRedis(await filler.consume(key))
    }
  }

  /** The store alone, asked as a limiter asks it. */
  async function checkStore(key: string): Promise<boolean> {
    const checks = limiter.policies.map((known) => ({
      policy: known,
      key,
      cost: 1,
      limit: known.limit,
    }))
    return (await store.apply('consume', checks)).every(({ allowed }) => allowed)
  }

  const steadyClock = new SimulatedClock()
  let steadyFiller: Limiter | undefined

  /** Half of the units are about to expire, one every `stepMs` ms, and the others have come at that rate until now. */
  async function fillSteadily(identities: readonly string[], wantedStepMs: number): Promise<void> {
    steadyFiller ??= open(makeStore(steadyClock.read))
    const filler = steadyFiller
    const stepMs = Math.min(wantedStepMs, windowMs / (2 * limit))
    const now = Date.now()

    async function takeAt(ms: number, takers: readonly string[]): Promise<void> {
      steadyClock.advance(ms - steadyClock.read())
      const decisions = await Promise.all(takers.map((key) => filler.consume(key)))
      if (decisions.every((decision) => decidedByRedis(decision).allowed)) return
      throw new Error('a log that was to be filled was full')
    }

    // As many as a packed log keeps at most before it is trimmed.
    const maxDead = Math.floor(limit / 4)
    const old = Math.floor(limit / 2)
    for (let unit = 1 - maxDead; unit <= old; unit += 1) {
      const dead = 1 - unit
      const takers = identities.filter((_, i) => 1 + (i * maxDead) / identities.length >= dead)
      await takeAt(now - windowMs + unit * stepMs, takers)
    }
    for (let unit = old + 2 - limit; unit <= 0; unit += 1) {
      await takeAt(now + unit * stepMs, identities)
    }
  }

  return {
    check: resilience ? check : checkStore,
    fill,
    ...(algorithm === 'sliding-log' ? { fillSteadily } : {}),
  }
}

/** Where requests are to be denied units lie close together, so that none expires while that is measured. */
function fillStepMs(algorithm: AlgorithmName, { traffic, limit, windowMs }: RedisSetting): number {
  if (fillsAtOnce(algorithm)) return 0
  return traffic === 'denied' ? 1 : windowMs / limit
}
