import { createLimiter, type Decision, type ResilienceEvent } from '@sluice/core'
import { type RedisStore, type RedisStoreOptions, redisStore } from '@sluice/redis'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { patientLimiter } from '../support/patient-limiter.ts'
import { redisOfFile } from '../support/redis-test.ts'
import { until } from '../support/until.ts'

const { client, redis: server } = await redisOfFile()

let opened = 0
let key: string

function begin(): void {
  opened += 1
  key = `fleet${opened}:{53t}:instances`
}
beforeEach(begin)

function open(options: RedisStoreOptions = {}): RedisStore {
  return redisStore(client, { prefix: `fleet${opened}`, heartbeatMs: 1_000, ...options })
}

async function use(store: RedisStore): Promise<Decision> {
  return patientLimiter({ store, name: 'p', limit: 40, window: '1m' }).consume('k')
}

/** Other processes, heard of so long ago. */
const others = (...agesMs: number[]) =>
  server.cli('ZADD', key, ...agesMs.flatMap((ms, at) => [Date.now() - ms, `other-${at}`]))

describe('the size of the fleet', () => {
  it('is how many processes were heard of in the last three beats, in a key that expires', async () => {
    await others(0, 1_000, 2_000, 60_000)
    const store = open()
    expect(store.fleet?.instances).toBe(1)
    await use(store)
    await until('the fleet has 4', () => store.fleet?.instances === 4)
    expect(await server.cli('ZCARD', key)).toBe(4)
    const ttlMs = Number(await server.cli('PTTL', key))
    expect(ttlMs).toBeGreaterThan(0)
    expect(ttlMs).toBeLessThanOrEqual(6_000)
    await store.close()
  })

  it('counts no process whose store was closed, though something is still settled', async () => {
    const store = open()
    const limiter = patientLimiter({ store, name: 'p', limit: 40, window: '1m' })
    const decision = await limiter.consume('k')
    await until('Redis knows 1', async () => (await server.cli('ZCARD', key)) === 1)
    await store.close()
    expect(await server.cli('ZCARD', key)).toBe(0)
    const sent = vi.spyOn(client, 'call')
    expect(await limiter.refund(decision)).toBe(false)
    await client.ping()
    expect(sent).not.toHaveBeenCalled()
    sent.mockRestore()
  })

  it('counts a process once, whatever the number of its stores, and lets it go with the last', async () => {
    const [one, two] = [open(), open()]
    await use(one)
    await use(two)
    await until('Redis knows 1', async () => (await server.cli('ZCARD', key)) === 1)
    await one.close()
    expect(await server.cli('ZCARD', key)).toBe(1)
    await two.close()
    await until('Redis knows 0', async () => (await server.cli('ZCARD', key)) === 0)
  })

  it('holds while Redis is away, and decides the share of each process', async () => {
    await others(0, 0, 0)
    const store = open()
    const observers = { onStoreError: () => undefined }
    const limiter = createLimiter({ store, name: 'p', limit: 40, window: '1m', observers })
    await limiter.consume('k')
    await until('the fleet has 4', () => store.fleet?.instances === 4)
    server.pause()
    const { outcomes, source } = await limiter.consume('k')
    server.resume()
    expect(source).toBe('fallback')
    expect(outcomes).toMatchObject([{ limit: 10, remaining: 9 }])
    await store.close()
  })

  it('falls with the third beat only, since all are forgotten when Redis loses its data', async () => {
    await others(0, 0, 0)
    const store = open()
    await use(store)
    await until('the fleet has 4', () => store.fleet?.instances === 4)
    await server.cli('DEL', key)
    await until('Redis knows 1', async () => (await server.cli('ZCARD', key)) === 1)
    expect(store.fleet?.instances).toBe(4)
    await until('the fleet has 1', () => store.fleet?.instances === 1)
    await store.close()
  })

  it('is told as often as the most eager store of a process wants', async () => {
    const [never, soon] = [open({ heartbeatMs: 0 }), open({ heartbeatMs: 1_000 })]
    await use(never)
    expect(await server.cli('EXISTS', key)).toBe(0)
    await use(soon)
    await until('Redis knows 1', async () => (await server.cli('ZCARD', key)) === 1)
    await Promise.all([never.close(), soon.close()])
  })

  it.each([1, 999, 60_001, -1, Number.NaN, '5s'])('is not told every %s ms', (heartbeatMs) => {
    expect(() => open({ heartbeatMs: heartbeatMs as number })).toThrow(/^heartbeatMs must be 0, or/)
  })
})

describe('the clock of Redis', () => {
  /** The client, as if Redis' clock was ahead. */
  function ahead(aheadMs: number, isForbidden = false) {
    return {
      call: async (command: string, ...args: (string | Buffer)[]): Promise<unknown> => {
        if (command !== 'TIME') return client.call(command, ...args)
        if (isForbidden) throw new Error("NOPERM this user has no permissions to run 'time'")
        const ms = Date.now() + aheadMs
        return [String(Math.floor(ms / 1_000)), String((ms % 1_000) * 1_000)]
      },
      defineCommand: () => undefined,
    }
  }

  async function skewOf(aheadMs: number): Promise<{ skewMs: number }[]> {
    const events: { skewMs: number }[] = []
    const store = redisStore(ahead(aheadMs), { prefix: `fleet${opened}`, heartbeatMs: 1_000 })
    const onResilience = (event: ResilienceEvent) => {
      if (event.type === 'clock-skew') events.push(event)
    }
    const observers = { onResilience }
    await patientLimiter({ store, limit: 1, window: '1m', observers }).consume('k')
    await until('the heartbeat is there', async () => (await server.cli('EXISTS', key)) === 1)
    await store.close()
    return events
  }

  it.each([3_600_000, -3_600_000])(
    'is told when it is %i ms ahead, and not below a second',
    async (aheadMs) => {
      expect(await skewOf(700)).toEqual([])
      begin()
      const [event] = await skewOf(aheadMs)
      expect(Math.abs((event?.skewMs ?? 0) - aheadMs)).toBeLessThan(2_000)
    },
  )

  async function windowEnd(aheadMs: number, isForbidden: boolean): Promise<number> {
    const options = { prefix: `fleet${opened}`, heartbeatMs: 1_000, clock: 'client' } as const
    const store = redisStore(ahead(aheadMs, isForbidden), options)
    const day = { algorithm: 'fixed-window', align: 'clock', limit: 10, window: '24h' } as const
    // The first one already: it could repair what others have written under a clock that is ahead.
    const { outcomes } = await patientLimiter({ store, ...day }).consume('k')
    await store.close()
    return Date.now() + (outcomes[0]?.resetMs ?? 0)
  }

  it("is what clock: 'client' is set to", async () => {
    const own = await windowEnd(0, false)
    begin()
    const corrected = await windowEnd(-7 * 60_000, false)
    expect(Math.abs(corrected - own - 7 * 60_000)).toBeLessThan(1_000)
  })

  it("is that of this process for clock: 'client' where TIME is forbidden", async () => {
    const end = await windowEnd(3_600_000, true)
    const off = end % 86_400_000
    expect(Math.min(off, 86_400_000 - off)).toBeLessThan(1_000)
  })
})
