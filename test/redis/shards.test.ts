import type { Check, CheckLimiter, Decision, PenaltyOptions, PolicyFields } from '@sluice/core'
import { redisStore, type UserClient } from '@sluice/redis'
import type { Cluster } from 'ioredis'
import { describe, expect } from 'vitest'
import { checkOf, patientLimiter } from '../support/patient-limiter.ts'
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

let opened = 0

interface Opened {
  readonly limiter: CheckLimiter
  /** A check of each policy. */
  checksOf(...keys: readonly string[]): Check[]
  /** Consumes, with a key for each policy. */
  consume(...keys: readonly string[]): Promise<Decision>
  /** Units that are left of each policy. */
  remaining(...keys: readonly string[]): Promise<readonly (number | undefined)[]>
}

function open(
  policies: readonly PolicyFields[],
  client: UserClient = cluster,
  penalty?: PenaltyOptions,
): Opened {
  opened += 1
  const limiter = patientLimiter({
    store: redisStore(client, { prefix: `shards${opened}`, denialTtlMs: 0 }),
    policies: policies.map((policy) =>
      policy.algorithm === 'concurrency' ? policy : { window: '1h', ...policy },
    ),
    failureMode: 'closed',
    observers: { onStoreError: () => undefined },
    ...(penalty && { penalty }),
  })
  const checksOf = (...keys: readonly string[]) =>
    limiter.policies.map((policy, index) => checkOf(policy, { key: keys[index] ?? '' }))
  return {
    limiter,
    checksOf,
    consume: async (...keys) => limiter.decide(checksOf(...keys)),
    async remaining(...keys) {
      const peeks = await Promise.all(keys.map((key) => limiter.peek(key)))
      return peeks.map(({ outcomes }, index) => outcomes[index]?.remaining)
    },
  }
}

describe('a request whose policies count different identities, on a Cluster', () => {
  it('takes from all of them when all allow it, in the order of the policies', async () => {
    const { limiter, consume, remaining } = open([
      { name: 'wide', limit: 50 },
      { name: 'narrow', limit: 5 },
      { name: 'middle', limit: 20 },
    ])
    const decision = await consume(here, there, elsewhere)
    expect(decision.allowed).toBe(true)
    const left = Object.entries({ wide: 49, narrow: 4, middle: 19 })
    expect(decision.outcomes.map(({ policy, remaining }) => [policy.name, remaining])).toEqual(left)
    expect(await limiter.refund(decision)).toBe(true)
    expect(await remaining(here, there, elsewhere)).toEqual([50, 5, 20])
  })

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

  it('gets back what it took when a later one denies', async () => {
    const { limiter, consume, remaining } = open([
      { name: 'narrow', limit: 5 },
      { name: 'wide', limit: 9 },
    ])
    await limiter.charge(there, { cost: 9 })
    const decision = await consume(here, there)
    expect(decision.allowed).toBe(false)
    expect(decision.outcomes).toMatchObject([
      { allowed: true, remaining: 5, receipt: undefined },
      { allowed: false, remaining: 0, receipt: undefined },
    ])
    expect(await limiter.refund(decision)).toBe(false)
    expect(await remaining(here, there)).toEqual([5, 0])
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

  it.each([
    ['before it was asked', { name: 'narrow', limit: 1 }],
    ['after it was asked', { name: 'wide', limit: 50 }],
  ])('is a strike for a penalty that was denied %s', async (_when, policy) => {
    const { limiter } = open([policy], cluster, { after: 3, within: '1h', for: '1h' })
    const quota = checkOf(limiter.policies[0], { key: here })
    await limiter.charge(here, { cost: quota.limit })
    const checks = [quota, checkOf(limiter.penalty, { key: there })]
    for (const left of [2, 1, 0]) {
      const { allowed, outcomes } = await limiter.decide(checks)
      expect(allowed).toBe(false)
      expect(outcomes[1]?.remaining).toBe(left)
    }
    await limiter.reset(here)
    expect((await limiter.decide(checks)).outcomes[1]?.allowed).toBe(false)
    // Nothing was taken of the quota meanwhile.
    await limiter.reset(there)
    const { allowed, outcomes } = await limiter.decide(checks)
    expect(allowed).toBe(true)
    expect(outcomes[0]?.remaining).toBe(quota.limit - 1)
    await limiter.block(there, '1m')
    expect((await limiter.decide(checks)).allowed).toBe(false)
  })

  it('is counted by a penalty whichever policy denies it, reached or not', async () => {
    const { limiter, consume, remaining } = open([
      { name: 'penalty', limit: 3, countDenied: true },
      { name: 'quota', limit: 5 },
      { name: 'distant', limit: 9, countDenied: true },
    ])
    await limiter.charge(there, { cost: 5 })
    expect((await consume(here, there, elsewhere)).allowed).toBe(false)
    expect(await remaining(here, there, elsewhere)).toEqual([2, 0, 8])
  })

  it.each<PolicyFields>([
    { name: 'leases', algorithm: 'concurrency', limit: 2 },
    { name: 'queue', algorithm: 'leaky-bucket', limit: 2, queue: 3 },
    { name: 'bucket', algorithm: 'token-bucket', limit: 2 },
  ])('gives back what $name took, and waits for nothing', async (policy) => {
    const { limiter, consume, remaining } = open([policy, { name: 'quota', limit: 9 }])
    await consume(here, elsewhere)
    await limiter.charge(there, { cost: 9 })
    const before = await remaining(here, there)
    const decision = await consume(here, there)
    expect(decision).toMatchObject({ allowed: false, delayMs: 0 })
    expect(decision.outcomes[0]).toMatchObject({ delayMs: 0, receipt: undefined })
    expect(await remaining(here, there)).toEqual(before)
  })

  it('peeks at all, and resets all', async () => {
    const { checksOf, consume, remaining } = open([
      { name: 'narrow', limit: 1 },
      { name: 'wide', limit: 9 },
    ])
    await consume(here, there)
    const checks = checksOf(here, there)
    const store = redisStore(cluster, { prefix: `shards${opened}` })
    expect((await store.apply('peek', checks)).map((one) => [one.allowed, one.remaining])).toEqual([
      [false, 0],
      [true, 8],
    ])
    await store.change({ op: 'reset', checks })
    expect(await remaining(here, there)).toEqual([1, 9])
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

describe('a store on a Cluster of which a node is frozen', () => {
  it('can be closed, also with requests of several tags under way', async () => {
    const { limiter, consume } = open([{ limit: 5 }, { name: 'other', limit: 5 }])
    await consume(here, there)
    const masters = await servers.masters()
    for (const node of masters) node.pause()
    void consume(here, there)
    await limiter.close()
    for (const node of masters) node.resume()
  })
})
