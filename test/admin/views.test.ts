import { createLimiter, memoryStore, regionalStore, type Store } from '@sluice/core'
import { collectMetrics } from '@sluice/metrics'
import { createWorker } from '@sluice/queue'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { goneStore } from '../support/store-through.ts'
import { until } from '../support/until.ts'
import { everything, startAdmin } from './admin-server.ts'

const reason = 'a test'

describe('the views of the admin API', () => {
  it('count requests, denials, near misses and latency of this process', async () => {
    const { call, visit } = await startAdmin()
    for (let i = 0; i < 7; i += 1) await visit('ada')
    const { body } = await call('GET', 'live')
    expect(body.requests).toMatchObject({ allowed: 5, denied: 2 })
    const burst = body.policies.find(({ policy }: { policy: string }) => policy === 'burst')
    expect(burst).toMatchObject({ allowed: 5, denied: 2, nearMisses: 1, limit: 5 })
    expect(burst.windowSeconds).toBe(3_600)
    const counts = body.latency.map(({ count }: { count: number }) => count)
    expect(counts.reduce((sum: number, count: number) => sum + count)).toBe(7)
    expect(body.store).toMatchObject({ breaker: 'closed', fallback: false, failedCalls: 0 })
  })

  it('answer 304 while nobody was counted', async () => {
    const { call } = await startAdmin()
    const { etag = '' } = await call('GET', 'live')
    expect((await call('GET', 'live', { headers: { 'if-none-match': etag } })).status).toBe(304)
  })

  it('list the busiest keys as digests, of one policy or of all', async () => {
    const { call, look, visit } = await startAdmin()
    for (let i = 0; i < 7; i += 1) await visit('ada')
    await visit('bob')
    const { digest } = (await look('user ada')).body
    const denied = await call('GET', 'top?policy=burst')
    expect(denied.body).toMatchObject({ by: 'denied', lists: [{ keys: [{ digest, count: 2 }] }] })
    const asked = await call('GET', 'top?by=asked&window=1h')
    const names = asked.body.lists.map(({ policy }: { policy: string }) => policy)
    expect(names).toEqual(expect.arrayContaining(['burst', 'account', 'anybody']))
    expect((await call('GET', 'top?policy=nothing')).body.lists).toEqual([])
  })

  it('name who is near a limit, with the hours of the policies', async () => {
    const { call, look, visit } = await startAdmin()
    for (let i = 0; i < 7; i += 1) await visit('ada')
    await visit('bob')
    const { digest } = (await look('user ada')).body
    const { body } = await call('GET', 'near')
    const shares = body.identities.filter((each: { policy: string }) => each.policy === 'burst')
    expect(shares).toMatchObject([
      { digest, mode: 'enforce', share: 1.4, denied: 2 },
      { share: 0.2 },
    ])
    const burst = body.policies.find(({ policy }: { policy: string }) => policy === 'burst')
    expect(burst.hours).toHaveLength(24)
    expect(burst.hours.at(-1)).toEqual([8, 2, 1])
  })

  it('take at most 20 KB for live counts of 1,000 policies, those that refuse most first', async () => {
    const metrics = collectMetrics()
    for (let each = 0; each < 1_000; each += 1) {
      const name = `policy-of-tenant-${each}`
      const options = { name, limit: 1, window: '1m', store: memoryStore() } as const
      const limiter = createLimiter({ ...options, observers: [metrics] })
      // Ten refuse more requests than all others. Each result of a policy is a series, and 1,900 are told apart.
      const asked = each < 890 ? 2 + Math.max(0, 10 - each) : 1
      for (let i = 0; i < asked; i += 1) await limiter.consume('ada')
    }
    const { call } = await startAdmin({ admin: { metrics, authorize: 'localhost' } })
    for (const path of ['live', 'traffic']) {
      const { body } = await call('GET', path)
      expect(body.policiesInAll, path).toBeGreaterThanOrEqual(1_000)
      expect(JSON.stringify(body).length, path).toBeLessThanOrEqual(20_480)
    }
    const { policies, requests } = (await call('GET', 'live')).body
    expect(policies.slice(0, 10)).toMatchObject(
      Array.from({ length: 10 }, (_, place) => {
        return { policy: `policy-of-tenant-${place}`, denied: 11 - place }
      }),
    )
    // The sums count the policies that are left out too.
    expect([requests.allowed, requests.denied]).toEqual([1_000, 945])
  })

  it('show who runs which version, and the health of the store', async () => {
    const { call, policies } = await startAdmin()
    await until('the process has announced itself', async () => {
      return (await policies.status()).fleet.length === 1
    })
    const { body } = await call('GET', 'fleet')
    expect(body).toMatchObject({
      scope: 'fleet',
      instances: [{ id: policies.id, version: policies.version, isThis: true }],
      versions: [{ version: policies.version, instances: 1 }],
      store: { name: 'memory', breaker: 'closed', isAway: false, hotKeys: 0, regions: [] },
    })
  })

  it("show the usage of a regional store's regions", async () => {
    const [local, global] = [memoryStore(), memoryStore()]
    const store = regionalStore({ region: 'eu', local, global, shares: { eu: 0.4, us: 0.4 } })
    onTestFinished(() => store.close())
    const { call, visit } = await startAdmin({ store })
    for (let i = 0; i < 7; i += 1) await visit('ada')
    const { body } = await call('GET', 'fleet')
    expect(body.store.grants).toEqual({ taken: 0, spent: 0, returned: 0, lapsed: 0 })
    expect(body.store.regions).toMatchObject([{ region: 'eu', share: 0.4, processes: 1, held: 0 }])
    const [{ fromShare, borrowed }] = body.store.regions
    // Three policies count each request: of the first one, two units are the share and one the pool.
    expect([fromShare, borrowed]).toEqual([8, 1])
  })

  it('show dead letters without their payloads, run them again once, and forget them', async () => {
    let { may } = everything
    const admin = { authorize: () => ({ actor: 'ada', may }) }
    const { call, queue } = await startAdmin({ admin })
    const away = new Error('the printer is away')
    const handler = vi
      .fn(async () => 'done')
      .mockRejectedValueOnce(away)
      .mockRejectedValueOnce(away)
    const worker = createWorker({ broker: queue.broker, attempts: 1, handler })
    onTestFinished(() => worker.close())
    for (const identity of ['ada', 'bob']) {
      await queue.enqueue({ identity, payload: { card: 'payload of ada' } })
    }
    await until('both are dead letters', async () => (await queue.depth()).dead === 2)
    may = ['read']
    const [first, second] = (await call('GET', 'queues/jobs/dead')).body.jobs
    expect([first.error, second.error]).toEqual([undefined, undefined])
    may = everything.may
    const { body } = await call('GET', 'queues/jobs/dead?limit=1')
    expect(body.jobs).toMatchObject([{ id: first.id, error: 'the printer is away', attempts: 1 }])
    expect(JSON.stringify(body)).not.toContain('payload of ada')
    const act = (what: string, id: string, more: object = {}) => {
      const body = { ids: [id, id, 'nobody'], reason, ...more }
      return call('POST', `queues/jobs/dead/${what}`, { body })
    }
    // However many operators ask for it.
    const retried = await Promise.all([1, 2, 3, 4, 5].map(() => act('retry', first.id)))
    expect(retried.flatMap(({ body }) => body.done)).toEqual([first.id])
    await until('it has run again', async () => (await queue.depth()).dead === 1)
    const answer = { done: [second.id], missing: ['nobody'] }
    const dry = await act('delete', second.id, { dryRun: true })
    expect(dry.body).toMatchObject({ ...answer, dryRun: true })
    expect((await act('delete', second.id)).body).toMatchObject(answer)
    const missing = [second.id, 'nobody']
    expect((await act('delete', second.id)).body).toMatchObject({ done: [], missing })
    expect(handler).toHaveBeenCalledTimes(3)
    const { body: audit } = await call('GET', 'audit')
    expect(audit.records[0]).toMatchObject({
      ...{ action: 'queues.delete', phase: 'done', target: { queue: 'jobs' }, result: { missing } },
    })
    const { body: queues } = await call('GET', 'queues')
    expect(queues.queues).toMatchObject([{ name: 'jobs', isAway: false, dead: 0 }])
    expect((await call('GET', 'queues/nothing/dead')).status).toBe(404)
  })

  it('stay readable while the store is unavailable, which actions report', async () => {
    const { store, state } = leavingStore()
    const { act, call } = await startAdmin({ store })
    await call('GET', 'policies')
    state.isAway = true
    for (const path of ['session', 'live', 'traffic', 'policies', 'fleet', 'top', 'queues']) {
      expect((await call('GET', path)).status, path).toBe(200)
    }
    for (const path of ['policies/diff?from=none', 'audit']) {
      const { status, body } = await call('GET', path)
      expect(status, path).toBe(503)
      expect(JSON.stringify(body)).not.toContain('password')
    }
    expect((await act('reset', { key: 'user ada' })).status).toBe(503)
  })

  it('count what a failure mode denied among the denials of its policy', async () => {
    const { call, metrics } = await startAdmin()
    const code = { store: goneStore(memoryStore()), name: 'code', limit: 1, window: '1h' } as const
    const observers = { ...metrics, onStoreError: () => undefined }
    const limiter = createLimiter({ ...code, observers })
    for (let i = 0; i < 3; i += 1) await limiter.consume('k')
    expect((await call('GET', 'traffic')).body.fallback).toBe(true)
    const { policies } = (await call('GET', 'live')).body
    const own = policies.find((each: { policy: string }) => each.policy === 'code')
    expect(own).toMatchObject({ allowed: 1, denied: 2, fallback: 3 })
  })
})

/** A store whose documents cannot be read or written while it is away. */
function leavingStore(): { store: Store; state: { isAway: boolean } } {
  const { documents, ...rest } = memoryStore()
  const state = { isAway: false }
  const leaving = <Args extends unknown[], T>(method: (...args: Args) => T) => {
    return (...args: Args): T => {
      if (state.isAway) throw new Error('redis://user:password@redis.internal:6379 is away')
      return method(...args)
    }
  }
  const { log, members, write } = documents
  const left = { log: leaving(log), members: leaving(members), write: leaving(write) }
  return { store: { ...rest, documents: { ...documents, ...left } }, state }
}
