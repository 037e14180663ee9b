import { memoryStore, unlimited } from '@sluice/core'
import { type GuardFields, ipKey, tiers } from '@sluice/http'
import { redisStore } from '@sluice/redis'
import { beforeEach, describe, expect, it } from 'vitest'
import { redisOfFile } from '../../support/redis-test.ts'
import { exchange, guardOf } from '../exchange.ts'

const { client } = await redisOfFile()

/** A busy machine is no failure. */
const patient = { failureMode: 'closed', deadlineMs: 60_000 } as const

/** A guard whose limit depends on the plan of each request. */
function tieredGuard(options: GuardFields<{ plan?: string }>) {
  return guardOf({
    ...{ name: 'plans', window: '1h', ...patient },
    limit: tiers({ pro: 100, root: unlimited, default: 10 }, ({ plan }: { plan?: string }) => plan),
    ...(options as object),
  })
}

describe.each(['memory', 'redis'])(
  'a limiter whose limit depends on the request, in %s',
  (kind) => {
    const by = (plan?: string) => ({ ...exchange(), native: { plan } })
    const address = '203.0.113.9'
    const aStore = () => (kind === 'memory' ? memoryStore() : redisStore(client.duplicate()))
    const left = { limit: 100, remaining: 60 }
    const pro = { allowed: true, ...left, outcomes: [{ ...left, used: 40 }] }

    beforeEach(() => client.flushall())

    it("peeks under the key's last limit", async () => {
      const guard = tieredGuard({ store: aStore() })
      const peek = () => guard.limiter.peek(ipKey(address))
      expect(await peek()).toMatchObject({ allowed: undefined, outcomes: [{ used: 0 }] })
      for (let i = 0; i < 40; i += 1) await guard.check(by('pro'))
      expect(await peek()).toMatchObject(pro)
      expect((await guard.limiter.peek(ipKey(address), { cost: 61 })).allowed).toBe(false)
      expect((await guard.check(by())).decision?.allowed).toBe(false)
      const free = { limit: 10, used: 10, remaining: 0, allowed: false }
      expect(await peek()).toMatchObject({ allowed: false, outcomes: [free] })
      await guard.check(by('pro'))
      expect(await peek()).toMatchObject({ allowed: true, outcomes: [{ limit: 100, used: 41 }] })
    })

    it('peeks exactly under given limits, and at a request like its guard', async () => {
      const store = aStore()
      const guard = tieredGuard({ store })
      for (let i = 0; i < 40; i += 1) await guard.check(by('pro'))
      const other = tieredGuard({ store: kind === 'memory' ? store : aStore() })
      expect(await other.peek(by('pro'))).toMatchObject(pro)
      expect(await other.peek(by())).toMatchObject({ allowed: false, outcomes: [{ limit: 10 }] })
      expect(await other.peek(by('root'))).toMatchObject({ allowed: true })
      const peek = (plans: number | typeof unlimited) =>
        other.limiter.peek(ipKey(address), { limits: { plans } })
      expect(await peek(100)).toMatchObject(pro)
      expect(await peek(unlimited)).toMatchObject({ allowed: true })
      expect(await peek(20)).toMatchObject({ allowed: false, outcomes: [{ limit: 20, used: 20 }] })
      for (const limits of [{ plan: 5 }, { plans: -1 }, { plans: '5' }, [], 5]) {
        const peeking = other.limiter.peek(ipKey(address), { limits } as never)
        await expect(peeking).rejects.toThrow(/^limits/)
      }
      if (kind === 'memory') return
      const unknown = { allowed: undefined, limit: undefined, remaining: undefined }
      const found = { ...unknown, outcomes: [{ ...unknown, used: 40 }] }
      expect(await other.limiter.peek(ipKey(address))).toMatchObject(found)
    })

    it('is denied for certain if another policy denies, whatever its limit', async () => {
      const store = aStore()
      const one = { name: 'one', limit: 1, window: '1h' } as const
      const plans = { name: 'plans', window: '1h', limit: () => 100, defaultLimit: 10 } as const
      const make = (at = store) => guardOf({ policies: [one, plans], store: at, ...patient })
      await make().check(exchange())
      const other = make(kind === 'memory' ? store : aStore())
      const { allowed, limit, retryAfterMs, outcomes } = await other.limiter.peek(ipKey(address))
      expect([allowed, limit, outcomes[0]?.allowed]).toEqual([false, 1, false])
      expect(retryAfterMs).toBeGreaterThan(3_000_000)
    })

    it('answers a peek at a request that is not counted or not admitted', async () => {
      const named = tieredGuard({ store: aStore(), skip: ({ plan }) => plan === 'root' })
      expect(await named.peek(by('root'))).toMatchObject({ allowed: true, outcomes: [] })
      const keyless = tieredGuard({ store: aStore(), key: () => undefined, onMissingKey: 'deny' })
      expect(await keyless.peek(by())).toMatchObject({ allowed: false, outcomes: [] })
      const listed = tieredGuard({ store: aStore(), block: { ips: [address] } } as never)
      expect(await listed.peek(by('pro'))).toMatchObject({ allowed: false, outcomes: [] })
      const ruled = guardOf({
        ...{ store: aStore(), ...patient },
        routes: { '/a': { name: 'a', limit: 3, window: '1h' }, '/free': false },
      })
      const at = (path: string) => exchange({ path })
      await ruled.check(at('/a'))
      expect(await ruled.peek(at('/a'))).toMatchObject({ outcomes: [{ limit: 3, used: 1 }] })
      for (const path of ['/free', '/other']) {
        expect(await ruled.peek(at(path))).toMatchObject({ allowed: true, outcomes: [] })
      }
      const added = guardOf({
        ...{ name: 'plans', window: '1h', limit: () => 100, defaultLimit: 10 },
        ...{ store: aStore(), ...patient },
        routes: { '/a': { limit: 3, window: '1h', combine: 'add' } },
      })
      await added.check(at('/a'))
      const { outcomes } = await added.limiter.peek(ipKey(address))
      expect(outcomes).toMatchObject([{ limit: 100, used: 1 }])
      expect((await added.peek(at('/a'))).outcomes).toMatchObject([{ limit: 100 }, { limit: 3 }])
    })

    it('reports no units of a bucket with an unknown limit', async () => {
      const store = aStore()
      const bucket = { algorithm: 'token-bucket', burst: 4 } as const
      const guard = tieredGuard({ store, ...bucket } as never)
      for (let i = 0; i < 3; i += 1) await guard.check(by('pro'))
      expect((await guard.limiter.peek(ipKey(address))).outcomes[0]?.limit).toBe(100)
      if (kind === 'memory') return
      const other = tieredGuard({ store: aStore(), ...bucket } as never)
      const { allowed, outcomes } = await other.limiter.peek(ipKey(address))
      expect([allowed, outcomes[0]?.used]).toEqual([undefined, undefined])
      // More than the bucket holds is denied under every limit.
      const more = await other.limiter.peek(ipKey(address), { cost: 5 })
      expect(more).toMatchObject({
        allowed: false,
        limit: undefined,
        outcomes: [{ allowed: false }],
      })
    })
  },
)
