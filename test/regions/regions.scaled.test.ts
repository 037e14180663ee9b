import type { CheckLimiter, Outcome } from '@sluice/core'
import { collectMetrics } from '@sluice/metrics'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { seriesValue } from '../metrics/scrape.ts'
import { checkOf, patientLimiter, type SomeOptions } from '../support/patient-limiter.ts'
import { callsOf } from '../support/redis-test.ts'
import { isProof } from '../support/scale.ts'
import { until } from '../support/until.ts'
import { type RegionName, startThreeServers, type ThreeServers } from './three-servers.ts'

let servers: ThreeServers
let opened = 0

beforeAll(async () => {
  servers = await startThreeServers()
})

afterAll(() => servers[Symbol.asyncDispose]())

function namespace(): string {
  opened += 1
  return `regions${opened}`
}

/** Shares of 4, and a pool of 2. */
const hourly = { name: 'api', limit: 10, window: '1h' } as const

async function limiterOf(region: RegionName, prefix: string, options: SomeOptions = {}) {
  const { store, toGlobal } = await servers.open(region, { redis: { prefix } })
  const limiter = patientLimiter({ policies: [hourly], store, failureMode: 'closed', ...options })
  return { limiter, store, toGlobal }
}

async function bothRegions(options: SomeOptions = {}) {
  const prefix = namespace()
  return { eu: await limiterOf('eu', prefix, options), us: await limiterOf('us', prefix, options) }
}

/** Consumes until it is refused. Returns the number of requests that passed. */
async function exhaust(limiter: CheckLimiter, key = 'user'): Promise<number> {
  for (let passed = 0; ; passed += 1) {
    if (!(await limiter.consume(key)).allowed) return passed
  }
}

const hot = [{ name: 'hot', limit: 20_000, window: '1h', prefetch: '6m' }] as const

/** Consumes a hundred units at once. Returns the number of admitted ones. */
async function hundred(limiter: CheckLimiter): Promise<number> {
  const decisions = await Promise.all(Array.from({ length: 100 }, () => limiter.consume('key')))
  return decisions.filter(({ allowed }) => allowed).length
}

function outcomeOf<O extends Pick<Outcome, 'policy'>>(
  decision: { readonly outcomes: readonly O[] },
  name = 'api',
): O {
  const found = decision.outcomes.find(({ policy }) => policy.name === name)
  if (!found) throw new Error(`no outcome of ${name}`)
  return found
}

describe('a limit of two regions', () => {
  it.runIf(isProof)(
    'keeps the share of a region that is cut off, and its grants until they lapse',
    async () => {
      const { eu } = await bothRegions({ policies: hot })
      for (let i = 0; i < 80; i += 1) await hundred(eu.limiter)
      await until('units of the pool are held', async () => {
        await eu.limiter.consume('key')
        return (eu.store.regions()[0]?.held ?? 0) > 0
      })
      await eu.toGlobal.refuse()
      // Of the pool it spends what it holds. The share of another key is untouched.
      expect(await exhaust(eu.limiter, 'key')).toBeGreaterThan(0)
      expect((await eu.limiter.consume('other')).allowed).toBe(true)
    },
  )

  it('borrows again once the region is back', async () => {
    const { eu, us } = await bothRegions()
    await eu.toGlobal.refuse()
    expect(await exhaust(eu.limiter)).toBe(4)
    expect(await exhaust(us.limiter)).toBe(6)
    await eu.toGlobal.accept()
    await us.limiter.reset('user')
    await until('it borrows', async () => (await eu.limiter.consume('user')).allowed)
  })

  it('does not wait for a global store that does not answer', async () => {
    const prefix = namespace()
    const { store } = await servers.open('eu', { redis: { prefix }, globalDeadlineMs: 20 })
    const limiter = patientLimiter({ policies: [hourly], store })
    servers.global.pause()
    try {
      expect(await exhaust(limiter)).toBe(4)
      const denied = outcomeOf(await limiter.consume('user'))
      expect(denied.retryAfterMs).toBeGreaterThan(0)
      expect(denied.retryAfterMs).toBeLessThanOrEqual(3_600_000)
    } finally {
      servers.global.resume()
    }
  })

  it('is counted in the key of each policy apart, and by the limit of the request', async () => {
    const { eu } = await bothRegions()
    const atLimit = async (limit: number, key: string) => {
      const check = checkOf(eu.limiter.policies[0], { key, limit })
      let passed = 0
      while ((await eu.limiter.decide([check])).allowed) passed += 1
      return passed
    }
    expect(await atLimit(100, 'gold')).toBe(60)
    // No share has a unit of it: the pool has.
    expect(await atLimit(1, 'small')).toBe(1)
    expect(await atLimit(0, 'none')).toBe(0)
  })
})

describe('the outcome of a policy in a region', () => {
  it('has the limit, and never more remaining units than are left', async () => {
    const { eu } = await bothRegions()
    const told: (number | undefined)[] = []
    for (let i = 0; i < 7; i += 1) {
      const { limit, remaining } = outcomeOf(await eu.limiter.consume('user'))
      expect(limit).toBe(10)
      told.push(remaining)
    }
    expect(told).toEqual([3, 2, 1, 0, 1, 0, 0])
  })

  it.runIf(isProof)(
    'has the wait for the share or for the pool, whichever is shorter',
    async () => {
      const policies = [{ name: 'api', limit: 10, window: '2s' }] as const
      const { eu } = await bothRegions({ policies })
      expect(await exhaust(eu.limiter)).toBe(6)
      const denied = outcomeOf(await eu.limiter.peek('user'))
      expect(denied.retryAfterMs).toBeGreaterThan(0)
      await new Promise((resolve) => setTimeout(resolve, (denied.retryAfterMs ?? 0) + 5))
      expect((await eu.limiter.consume('user')).allowed).toBe(true)
    },
  )

  it('is asked by peek, which changes nothing', async () => {
    const { eu } = await bothRegions()
    for (let i = 0; i < 5; i += 1) await eu.limiter.consume('user')
    const peeked = await eu.limiter.peek('user')
    expect(peeked.allowed).toBe(true)
    expect(outcomeOf(peeked).remaining).toBe(1)
    expect(await exhaust(eu.limiter)).toBe(1)
    expect((await eu.limiter.peek('user')).allowed).toBe(false)
  })

  it('takes a whole cost from the share or from the pool', async () => {
    const { eu } = await bothRegions()
    expect((await eu.limiter.consume('user', { cost: 3 })).allowed).toBe(true)
    // One unit is left in the share, and two in the pool.
    expect((await eu.limiter.consume('user', { cost: 3 })).allowed).toBe(false)
    expect((await eu.limiter.consume('user', { cost: 2 })).allowed).toBe(true)
    expect(outcomeOf(await eu.limiter.consume('fresh', { cost: 5 })).retryAfterMs).toBe(
      Number.POSITIVE_INFINITY,
    )
  })
})

it('a refund in a region goes back to the share, or to the pool, whichever gave the units', async () => {
  const { eu, us } = await bothRegions()
  const first = await eu.limiter.consume('user')
  for (let i = 0; i < 4; i += 1) await eu.limiter.consume('user')
  const last = await eu.limiter.consume('user')
  expect(await eu.limiter.refund(last)).toBe(true)
  expect(await eu.limiter.refund(last)).toBe(false)
  expect(await exhaust(us.limiter)).toBe(5)
  expect(await eu.limiter.refund(first)).toBe(true)
  expect(await exhaust(eu.limiter)).toBe(1)

  await eu.limiter.consume('part', { cost: 4 })
  const borrowed = await eu.limiter.consume('part', { cost: 2 })
  expect(await eu.limiter.refund(borrowed, { units: 1 })).toBe(true)
  expect(await exhaust(eu.limiter, 'part')).toBe(1)
})

describe('several policies in a region', () => {
  const both = [hourly, { name: 'daily', limit: 5, window: '1d' }] as const

  it('are all or nothing, whether shares or the pool decide', async () => {
    const { eu } = await bothRegions({ policies: both })
    // 'daily' has a share of 2, and a pool of 1.
    expect(await exhaust(eu.limiter)).toBe(3)
    const { outcomes } = await eu.limiter.peek('user')
    expect(outcomes.map(({ allowed }) => allowed)).toEqual([true, false])
    // The denied requests have taken nothing of 'api'.
    expect(outcomes[0]?.remaining).toBe(1)
  })

  it('give the units of the pool back if another policy denies', async () => {
    const flight = { name: 'flight', limit: 1, algorithm: 'concurrency', lease: '1h' } as const
    const { eu, us } = await bothRegions({ policies: [hourly, flight] })
    let held = await eu.limiter.consume('user')
    for (let i = 0; i < 4; i += 1) {
      await eu.limiter.release(held)
      held = await eu.limiter.consume('user')
      expect(held.allowed).toBe(true)
    }
    expect((await eu.limiter.consume('user')).allowed).toBe(false)
    expect((await us.limiter.consume('user')).allowed).toBe(true)
    expect(await eu.limiter.release(held)).toBe(true)
    expect((await eu.limiter.consume('user')).allowed).toBe(true)
  })

  it('count concurrency and penalties in each region, and a strike for each denial', async () => {
    const { eu, us } = await bothRegions({
      policies: [hourly],
      penalty: { name: 'pen', after: 2, within: '1h', for: '1h' },
    })
    for (let i = 0; i < 6; i += 1) expect((await eu.limiter.consume('user')).allowed).toBe(true)
    expect(outcomeOf(await eu.limiter.consume('user'), 'pen').allowed).toBe(true)
    const blocked = outcomeOf(await eu.limiter.consume('user'), 'pen')
    expect(blocked.allowed).toBe(false)
    expect((await us.limiter.consume('user')).allowed).toBe(true)
  })
})

describe("a policy of reach 'global'", () => {
  const policies = [{ name: 'sales', limit: 5, window: '1h', reach: 'global' }] as const

  it('is decided in one place, exactly, whatever its algorithm', async () => {
    for (const algorithm of ['sliding-log', 'token-bucket'] as const) {
      const { eu, us } = await bothRegions({ policies: [{ ...policies[0], algorithm }] })
      expect(await exhaust(eu.limiter)).toBe(5)
      expect(await exhaust(us.limiter)).toBe(0)
    }
  })

  it('gives back what the region took if it denies', async () => {
    const { eu } = await bothRegions({ policies: [hourly, ...policies] })
    expect(await exhaust(eu.limiter)).toBe(5)
    expect(await exhaust(eu.limiter)).toBe(0)
    await until('the pool has its units back', async () => {
      const api = outcomeOf(await eu.limiter.peek('user'))
      return api.allowed === true && api.remaining === 1
    })
  })

  it('is decided by the failure mode while the global store is away, alone', async () => {
    const prefix = namespace()
    const { store, toGlobal } = await servers.open('eu', { redis: { prefix } })
    const central = patientLimiter({ policies, store, failureMode: 'closed' })
    const divided = patientLimiter({ policies: [hourly], store, failureMode: 'closed' })
    await toGlobal.refuse()
    for (let i = 0; i < 30; i += 1) {
      expect((await central.consume('user')).source).toBe('closed')
    }
    expect((await divided.consume('user')).source).toBe('store')
    expect(divided.storeHealth().isAway).toBe(false)
  })

  it('takes grants with prefetch, and refunds them', async () => {
    const sales = { ...policies[0], limit: 100_000, prefetch: '6m' } as const
    const { eu } = await bothRegions({ policies: [sales] })
    const asked = () => callsOf(servers.global, 'evalsha')
    await until('the store is asked for few of many requests', async () => {
      const before = await asked()
      for (let i = 0; i < 200; i += 1) await eu.limiter.consume('user')
      return (await asked()) - before < 20
    })
    expect(await eu.limiter.refund(await eu.limiter.consume('user'))).toBe(true)
  })
})

it('a charge takes units of the share, and of the global store with that reach', async () => {
  const policies = [hourly, { name: 'sales', limit: 5, window: '1h', reach: 'global' }] as const
  const { eu, us } = await bothRegions({ policies })
  await eu.limiter.charge('user', { cost: 3 })
  const left = async ({ limiter }: typeof eu) =>
    (await limiter.peek('user')).outcomes.map(({ remaining }) => remaining)
  expect(await Promise.all([left(eu), left(us)])).toEqual([
    [1, 2],
    [4, 2],
  ])
})

describe('a reset and a block', () => {
  it('reach the other region', async () => {
    const { eu, us } = await bothRegions({ penalty: { name: 'pen', after: 'never' } })
    expect(await exhaust(us.limiter)).toBe(6)
    expect(await exhaust(eu.limiter)).toBe(4)
    expect(await eu.limiter.reset('user')).toBe(true)
    expect((await eu.limiter.peek('user')).allowed).toBe(true)
    await until('the other region has reset the key', async () => {
      const [outcome] = (await us.limiter.peek('user')).outcomes
      return outcome?.remaining === 4
    })
    await eu.limiter.block('mallory', '1h')
    await until('the other region blocks', async () => !(await us.limiter.peek('mallory')).allowed)
    await us.limiter.unblock('mallory')
    await until('nobody blocks', async () => (await eu.limiter.peek('mallory')).allowed === true)
  })

  it.runIf(isProof)('are done once, by one of the processes of a region', async () => {
    const redis = { prefix: namespace(), denialTtlMs: 0 }
    const open = async (region: RegionName) => {
      const { store } = await servers.open(region, { redis })
      return patientLimiter({ policies: [hourly], store })
    }
    const eu = await open('eu')
    const [one, two] = [await open('us'), await open('us')]
    expect(await exhaust(one)).toBe(6)
    await two.peek('user')
    await eu.reset('user')
    const isReset = async (limiter: CheckLimiter, key: string) =>
      outcomeOf(await limiter.peek(key)).remaining === 4
    await until('the other region has reset the key', () => isReset(one, 'user'))
    expect(await exhaust(one)).toBe(6)
    // Some resets later both processes of the region have read of the first one.
    for (const key of ['second', 'third']) {
      await exhaust(one, key)
      await eu.reset(key)
      await until('it is reset', () => isReset(one, key))
    }
    expect((await one.peek('user')).allowed).toBe(false)
  })

  it('are refused while the global store is away, and leave the share as it is', async () => {
    const { eu } = await bothRegions()
    await eu.limiter.consume('user')
    await eu.toGlobal.refuse()
    await expect(eu.limiter.reset('user')).rejects.toThrow('nothing was reset in this region')
    expect(outcomeOf(await eu.limiter.peek('user')).remaining).toBe(3)
  })
})

it.runIf(isProof)('prefetch in a region takes grants of the share too', async () => {
  const { eu } = await bothRegions({ policies: hot })
  let passed = 0
  for (let i = 0; i < 140; i += 1) passed += await hundred(eu.limiter)
  expect(passed).toBeLessThanOrEqual(12_000)
  expect(passed).toBeGreaterThan(8_000)
  expect(eu.limiter.storeHealth().grants.spent).toBeGreaterThan(0)
})

it('regions() reports the share, and what was taken from it, borrowed and held, of each region', async () => {
  const { eu, us } = await bothRegions()
  await exhaust(eu.limiter)
  await us.limiter.consume('user')
  await until('each has heard of the other', () => eu.store.regions().length === 2)
  await until('the counts are there', () => {
    const [ofEu, ofUs] = us.store.regions()
    return ofEu?.borrowed === 2 && ofUs?.fromShare === 1
  })
  const units = { fromShare: 4, borrowed: 2, held: 0 }
  expect(eu.store.regions()[0]).toEqual({ region: 'eu', share: 0.4, processes: 1, ...units })
})

it('the metrics of a region have its share, its units by source, and the bounds in force', async () => {
  const metrics = collectMetrics()
  const { limiter } = await limiterOf('eu', namespace(), { observers: [metrics] })
  expect(await exhaust(limiter)).toBe(6)
  const value = (name: string) => seriesValue(metrics, name)
  expect(await value('sluice_region_share{region="eu"}')).toBe(0.4)
  expect(await value('sluice_region_units_total{region="eu",source="share"}')).toBe(4)
  expect(await value('sluice_region_units_total{region="eu",source="pool"}')).toBe(2)
  expect(await value('sluice_region_held_units{region="eu"}')).toBe(0)
  expect(await value('sluice_region_global_away{region="eu"}')).toBe(0)
  const page = await metrics.read()
  const bounds = page.find(({ name }) => name === 'sluice_region_bound_units')?.samples ?? []
  expect(bounds.map(({ labels: [, ...of], value: units }) => [...of, units])).toEqual([
    ['eu', 'share', 4],
    ['eu', 'pool', 2],
  ])
})

it('an outage of the Redis of a region leaves each process its part of the share', async () => {
  const prefix = namespace()
  const { limiter } = await limiterOf('eu', prefix, { failureMode: 'fallback' })
  await limiter.consume('user')
  await servers.eu.kill()
  // 10 / ⌈1 / 0.4⌉ = 3, of which one was taken before.
  const passed = await exhaust(limiter)
  expect(passed).toBeGreaterThan(0)
  expect(passed).toBeLessThanOrEqual(3)
})
