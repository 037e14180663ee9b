import {
  algorithmNames,
  type Held,
  memoryStore,
  type Outcome,
  type PolicyFields,
} from '@sluice/core'
import { redisStore, type UserClient } from '@sluice/redis'
import fc from 'fast-check'
import type { Cluster } from 'ioredis'
import { describe, expect, vi } from 'vitest'
import { algorithmPolicy } from '../stores/algorithm-policy.ts'
import { policiesOf } from '../stores/traces.ts'
import { checkOf, limiterOf, patientLimiter } from '../support/patient-limiter.ts'
import type { RedisCluster } from '../support/redis-cluster.ts'
import { it } from '../support/redis-test.ts'
import { identitiesOf } from './tag-identities.ts'

let servers: RedisCluster
let cluster: Cluster

it.beforeAll(({ cluster: own, clusterClient }) => {
  servers = own
  cluster = clusterClient
})

/** Identities of three tags, on different masters. */
const [here = '', there = '', elsewhere = ''] = [1, 30, 60].flatMap((tag) => identitiesOf(tag, 1))

const now = 1_795_195_800_000
let opened = 0

function open(policies: readonly PolicyFields[], client: UserClient = cluster) {
  opened += 1
  const limiter = patientLimiter({
    store: redisStore(client, { prefix: `shards${opened}`, denialTtlMs: 0 }),
    policies: policies.map((policy) => ({ window: '1h', ...policy })),
    failureMode: 'closed',
    observers: { onStoreError: () => undefined },
  })
  return {
    limiter,
    /** Consumes, with a key for each policy. */
    consume: async (...keys: readonly string[]) =>
      limiter.decide(keys.map((key, index) => checkOf(limiter.policies[index], { key }))),
    async remaining(...keys: readonly string[]) {
      const peeks = await Promise.all(keys.map((key) => limiter.peek(key)))
      return peeks.map(({ outcomes }, index) => outcomes[index]?.remaining)
    },
  }
}

const policies = fc
  .array(
    fc.record({
      algorithm: fc.constantFrom(...algorithmNames),
      limit: fc.integer({ min: 1, max: 5 }),
      countDenied: fc.boolean(),
    }),
    { minLength: 2, maxLength: 3 },
  )
  .map((drawn) =>
    policiesOf(
      drawn.map(({ countDenied, ...own }, index) => {
        const policy = algorithmPolicy(own.algorithm, { name: `p${index}`, window: '1h', ...own })
        return own.algorithm === 'concurrency' ? policy : { ...policy, countDenied }
      }),
    ),
  )
const { penalty = [] } = limiterOf({ penalty: { after: 3, within: '1h', for: '1h' } })
const steps = fc.array(
  fc.record({
    op: fc.constantFrom('consume', 'consume', 'consume', 'charge', 'refund', 'reset', 'peek'),
    keys: fc.tuple(...Array.from({ length: 4 }, () => fc.constantFrom(here, there, elsewhere))),
    cost: fc.constantFrom(1, 1, 2),
  }),
  { minLength: 1, maxLength: 25 },
)

it('a request whose policies count different identities, on a Cluster, is decided as in memory', async () => {
  vi.spyOn(Date, 'now').mockReturnValue(now)
  await fc.assert(
    fc.asyncProperty(policies, fc.boolean(), steps, async (quotas, isPunished, trace) => {
      opened += 1
      const options = { prefix: `shards${opened}`, clock: () => now, denialTtlMs: 0 }
      const [store, model] = [redisStore(cluster, options), memoryStore()]
      const all = isPunished ? quotas.concat(penalty) : quotas
      let taken: readonly (readonly Held[])[] = [[], []]
      for (const { op, keys, cost } of trace) {
        const checks = all.map((policy, at) => checkOf(policy, { key: keys[at] ?? here, cost }))
        if (op === 'refund') {
          const [ofStore = [], ofModel = []] = taken
          const changed = await store.change({ op, checks: ofStore })
          expect(changed).toEqual(model.change({ op, checks: ofModel }))
          taken = []
        } else if (op === 'reset') {
          expect(await store.change({ op, checks })).toEqual(model.change({ op, checks }))
        } else {
          const found = await store.apply(op, checks)
          const expected = model.apply(op, checks)
          const isAllowed = (outcomes: readonly Outcome[]) =>
            outcomes.every(({ allowed }) => allowed)
          expect(isAllowed(found)).toBe(isAllowed(expected))
          for (const [at, { policy, remaining, delayMs }] of found.entries()) {
            expect(policy).toBe(checks[at]?.policy)
            expect(delayMs).toBe(expected[at]?.delayMs)
            // Nothing is known of a shard that was not asked.
            if (remaining !== undefined) expect(remaining).toBe(expected[at]?.remaining)
          }
          taken = [found, expected].map(heldOf)
        }
        for (const check of checks) {
          const [expected] = model.apply('peek', [check])
          const { allowed, remaining } = expected ?? {}
          expect(await store.apply('peek', [check])).toMatchObject([{ allowed, remaining }])
        }
      }
      await store.close()
    }),
    { numRuns: 80 },
  )
  vi.restoreAllMocks()
})

function heldOf(outcomes: readonly Outcome[]): readonly Held[] {
  return outcomes.flatMap(({ receipt }) => (receipt ? [{ ...receipt.check, receipt }] : []))
}

describe('a request whose policies count different identities, on a Cluster', () => {
  it('is denied by the tightest without asking the others, of which nothing is known then', async () => {
    const { consume, remaining } = open([
      { name: 'wide', limit: 50 },
      { name: 'narrow', limit: 1 },
    ])
    await consume(here, there)
    const { allowed, retryAfterMs, outcomes } = await consume(here, there)
    expect(allowed).toBe(false)
    expect(retryAfterMs).toBeGreaterThan(3_500_000)
    const unknown = { remaining: undefined, resetMs: undefined, receipt: undefined }
    const known = {
      policy: { name: 'wide' },
      allowed: true,
      limit: 50,
      retryAfterMs: 0,
      delayMs: 0,
    }
    expect(outcomes[0]).toMatchObject({ ...known, ...unknown })
    expect(outcomes[1]).toMatchObject({ allowed: false, remaining: 0, retryAfterMs })
    expect(await remaining(here, there)).toEqual([49, 0])
  })

  it('asks equally tight ones in their order', async () => {
    const { consume, limiter } = open([
      { name: 'one', limit: 2 },
      { name: 'two', limit: 2 },
    ])
    await limiter.charge(here, { cost: 2 })
    await limiter.charge(there, { cost: 2 })
    const { outcomes } = await consume(here, there)
    expect(outcomes).toMatchObject([
      { allowed: false, remaining: 0 },
      { allowed: true, remaining: undefined },
    ])
  })

  it('admits no more than each limit in parallel, and leaves no more taken than it admitted', async () => {
    const { limiter, consume, remaining } = open([
      { name: 'narrow', limit: 20 },
      { name: 'wide', limit: 100 },
    ])
    await limiter.charge(there, { cost: 90 })
    const decisions = await Promise.all(Array.from({ length: 60 }, () => consume(here, there)))
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(10)
    expect(await remaining(here, there)).toEqual([10, 0])
  })
})

describe('a request of several shards', () => {
  /** A client whose calls for the tag of `there` pass a gate first. */
  function gatedClient(gate: () => Promise<void>) {
    return {
      nodes: () => [],
      slots: [],
      options: {},
      defineCommand: () => undefined,
      async call(command: string, ...args: (string | Buffer)[]): Promise<unknown> {
        if (args.some((arg) => String(arg).includes('{e2j}'))) await gate()
        return cluster.call(command, ...args)
      },
    }
  }

  const policies = [
    { name: 'narrow', limit: 5 },
    { name: 'wide', limit: 9 },
  ]

  it('gives back what it took when a later shard fails, and fails', async () => {
    const client = gatedClient(() => Promise.reject(new Error('connection reset')))
    const { consume, remaining } = open(policies, client)
    expect((await consume(here, there)).source).toBe('closed')
    expect((await remaining(here, there))[0]).toBe(5)
  })

  it('is denied all the same when nothing can be given back, which is then unknown', async () => {
    let isDown = false
    const client = gatedClient(async () => {
      if (isDown) throw new Error('connection reset')
      isDown = true
    })
    const { limiter, consume } = open(policies, client)
    await limiter.charge(here, { cost: 9 })
    const { source, outcomes } = await consume(there, here)
    expect(source).toBe('store')
    expect(outcomes).toMatchObject([
      { allowed: true, remaining: undefined, resetMs: undefined, receipt: undefined },
      { allowed: false, remaining: 0 },
    ])
  })

  it('is settled to its end when the store is closed meanwhile', async () => {
    let openGate = (): void => undefined
    const gate = new Promise<void>((resolve) => {
      openGate = resolve
    })
    const { limiter, consume } = open(
      policies,
      gatedClient(() => gate),
    )
    const decision = consume(here, there)
    const closed = limiter.close()
    expect((await consume(here, there)).source).toBe('closed')
    openGate()
    await closed
    expect(await decision).toMatchObject({ allowed: true, source: 'store' })
  })
})

it('a store on a Cluster of which a node is frozen can be closed, also with requests of several tags under way', async () => {
  const { limiter, consume } = open([{ limit: 5 }, { name: 'other', limit: 5 }])
  await consume(here, there)
  const masters = await servers.masters()
  for (const node of masters) node.pause()
  void consume(here, there)
  await limiter.close()
  for (const node of masters) node.resume()
})
