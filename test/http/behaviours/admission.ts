import { SluiceError } from '@sluice/core'
import { apiKey, firstOf, ip } from '@sluice/http'
import { createAdmission, createQueue, type Job, memoryBroker, statusMonitor } from '@sluice/queue'
import { expect, it, vi } from 'vitest'
import type { Behaviour } from '../../adapters/adapter-conformance.ts'
import type { NativeRequest } from '../../adapters/drivers/driver.ts'
import {
  ada,
  idOf,
  keyed,
  look,
  post,
  type QueueingSetup,
  reaches,
  startQueueing,
} from '../../adapters/queueing-app.ts'
import { raise } from '../../support/raise.ts'
import { until } from '../../support/until.ts'

/** What becomes of requests that are queued, whose their jobs are, and what the monitor shows. */
export const admission: Behaviour = ({ start }) => {
  const queueing = (setup?: QueueingSetup) => startQueueing(start, setup)
  const first = keyed('"1"')
  const bob = { 'x-api-key': 'bob' }
  const nobody = { 'x-api-key': '' }
  const remove = (headers: Record<string, string>) => ({ method: 'DELETE', headers }) as const

  it('keeps the jobs and idempotency keys of two users behind one address apart', async () => {
    const { app, send, work } = await queueing({
      limits: { limit: 9, window: '1m', key: apiKey() },
    })
    const id = idOf(await send(first))
    const other = await send(keyed('"1"', { headers: bob }))
    expect(other.status).toBe(202)
    expect(idOf(other)).not.toBe(id)
    expect((await look(app, id, bob)).status).toBe(404)
    expect((await app.ask(`/jobs/${id}`, remove(bob))).status).toBe(404)
    work(() => 'of ada')
    await reaches(app, id, 'done')
    expect((await look(app, id, bob)).status).toBe(404)
    expect((await send(keyed('"1"', { headers: bob }))).body).not.toContain(id)
  })

  it('has no jobs for a request without a key: it neither makes one, nor sees or cancels any', async () => {
    const { app, queue, reached, send } = await queueing()
    const id = idOf(await send(first))
    const refused = await send(keyed('"1"', { headers: nobody }))
    expect(refused.status).toBe(403)
    expect(refused.field('content-type')).toBe('application/problem+json')
    expect(refused.body).not.toContain(id)
    expect((await look(app, id, nobody)).status).toBe(404)
    expect((await app.ask(`/jobs/${id}`, remove(nobody))).status).toBe(404)
    expect(reached).not.toHaveBeenCalled()
    expect(await queue.depth()).toMatchObject({ depth: 1 })
    expect((await app.ask(`/jobs/${id}`, remove(ada))).status).toBe(200)
  })

  it.each(['overflow', 'preferred'] as const)(
    'admits a request without a key that need not be queued: %s',
    async (admit) => {
      const limits = { limit: 1, window: '1m' } as const
      const { queue, sent } = await queueing({ admission: { admit }, limits })
      const keyless = keyed('"1"', { headers: { ...nobody, prefer: 'respond-async' } })
      expect(await sent(keyless, keyless)).toEqual([200, 429])
      expect(await queue.depth()).toMatchObject({ depth: 0 })
    },
  )

  it('shares jobs by address only if configured', async () => {
    const identity = firstOf<NativeRequest>(apiKey(), ip())
    const { app, send } = await queueing({ queue: { identity } })
    const id = idOf(await send(post({ headers: nobody })))
    expect((await look(app, id, nobody)).status).toBe(200)
    expect((await look(app, id)).status).toBe(404)
    const own = idOf(await send())
    expect((await look(app, own, nobody)).status).toBe(404)
    expect((await look(app, own, { 'x-api-key': '@ip/127.0.0.1' })).status).toBe(404)
  })

  it('does not guess the owner of requests', () => {
    vi.spyOn(console, 'warn').mockReturnValue()
    const queue = createQueue({ broker: memoryBroker() })
    const message = /^queue must know who owns a request: .*identity: apiKey\({ verify }\)/
    expect(() => createAdmission({ queue, monitor: '/jobs' })).toThrow(message)
    expect(() => statusMonitor({ queue })).toThrow(message)
  })

  it('A02, A03: the monitor reports a waiting, running and finished job', async () => {
    const { app, send, work } = await queueing()
    const id = idOf(await send())
    const pending = await look(app, id)
    expect(pending.status).toBe(200)
    expect(JSON.parse(pending.body)).toEqual({ id, status: 'pending' })
    expect(pending.field('retry-after')).toMatch(/^[1-9]\d*$/)
    expect(pending.field('cache-control')).toBe('no-store')

    let finish: ((result: unknown) => void) | undefined
    work(() => new Promise((resolve) => (finish = resolve)))
    await reaches(app, id, 'running')
    expect((await look(app, id)).field('retry-after')).toBe('1')
    await until('the job has begun', () => finish !== undefined)
    finish?.({ pages: 3 })
    await reaches(app, id, 'done')
    const done = await look(app, id)
    expect(JSON.parse(done.body)).toEqual({ id, status: 'done', result: { pages: 3 } })
    expect(done.field('retry-after')).toBeUndefined()
  })

  it.each(['/a b', '/a\r\nX-Evil: 1', '//[', '', 7, null])(
    'shows the result itself if its location would be %j',
    async (url) => {
      vi.spyOn(console, 'warn').mockReturnValue()
      const { app, send, work } = await queueing({ queue: { resultUrl: () => url as string } })
      work(() => 'here')
      const id = idOf(await send())
      await reaches(app, id, 'done')
      const done = await look(app, id)
      expect(done.status).toBe(200)
      expect(JSON.parse(done.body)).toEqual({ id, status: 'done', result: 'here' })
    },
  )

  it('A04: refuses too frequent polls, without effect on the job', async () => {
    const poll = { limit: 1, window: '1m' } as const
    const { app, send, work } = await queueing({ monitor: { poll } })
    const id = idOf(await send())
    expect((await look(app, id)).status).toBe(200)
    const refused = await look(app, id)
    expect([refused.status, refused.field('retry-after')]).toEqual([429, '60'])
    expect(refused.field('content-type')).toBe('application/problem+json')
    expect(JSON.parse(refused.body)['violated-policies']).toEqual(['poll'])
    expect((await look(app, id, bob)).status).toBe(404)
    const ran = vi.fn()
    work(ran)
    await until('the job runs', () => ran.mock.calls.length === 1)
  })

  it('A05: answers 202 if the outcome cannot be read: the job was accepted', async () => {
    vi.spyOn(console, 'warn').mockReturnValue()
    const { broker, send } = await queueing()
    const failure = new SluiceError('SLUICE_BROKER_FAILED', 'it did not answer')
    const lookUp = vi.spyOn(broker, 'status').mockRejectedValue(failure)
    const waited = await send(keyed('"1"', { headers: { prefer: 'wait=10' } }))
    expect(waited.status).toBe(202)
    expect(lookUp).toHaveBeenCalled()
    const again = await send(first)
    expect([again.status, idOf(again)]).toEqual([202, idOf(waited)])
  })

  it('holds a lease only while a request is being queued', async () => {
    const { send, sent } = await queueing({ limits: { algorithm: 'concurrency', limit: 1 } })
    expect(await sent(post(), post(), post())).toEqual([202, 202, 202])
    const waits = send(post({ headers: { prefer: 'respond-async, wait=1' } }))
    await until('the answer is 429', async () => (await send()).status === 429)
    vi.setSystemTime(Date.now() + 1_000)
    expect((await waits).status).toBe(202)
    await until('the answer is 202', async () => (await send()).status === 202)
  })

  it('keeps no lease of a request of which it cannot know whether it was queued', async () => {
    let isKnown = false
    const identity = async () => {
      if (!isKnown) throw new Error('nobody knows')
      return 'ada'
    }
    const { sent } = await queueing({
      queue: { identity },
      admission: { admit: 'preferred' },
      limits: { algorithm: 'concurrency', limit: 1 },
    })
    expect(await sent(keyed('order-1'))).toEqual([500])
    isKnown = true
    expect(await sent(keyed('order-1'))).toEqual([200])
  })

  it('refuses with 503 when the queue is full, and charges nothing', async () => {
    const { queue, send, sent, work } = await queueing({ queue: { maxDepth: 1 } })
    expect(await sent(post())).toEqual([202])
    const full = await send()
    expect([full.status, full.field('retry-after')]).toEqual([503, '5'])
    expect(full.field('content-type')).toBe('application/problem+json')
    await sent(...Array(5).fill(post()))
    work(() => null)
    await until('the queue is empty', async () => (await queue.depth()).depth === 0)
    expect(await sent(post())).toEqual([202])
  })

  it('charges invalid requests, so that nobody floods for free', async () => {
    const { app, send, sent, work } = await queueing({
      limits: { limit: 8, window: '1m' },
      admission: { maxBodyBytes: 100, idempotency: { whileRunning: 'conflict' } },
    })
    work(() => raise('never'))
    await reaches(app, idOf(await send(first)), 'failed')
    const wrong = [
      post({ body: '{"page":' }),
      keyed('"open'),
      post({ body: `["${'x'.repeat(200)}"]` }),
      post({ headers: { 'content-encoding': 'gzip' } }),
      keyed('"1"', { body: '{"page":2}' }),
      ...[first, first, post()],
    ]
    expect(await sent(...wrong)).toEqual([400, 400, 413, 415, 422, 500, 500, 429])
  })

  it('refuses with 429 a client that would fill the queue alone', async () => {
    const { sent } = await queueing({ queue: { maxDepth: 10 } })
    expect(await sent(post(), post(), post({ headers: bob }))).toEqual([202, 429, 202])
  })

  it("stores the configured headers and the request's owner, without its key", async () => {
    const toJob = vi.fn((envelope: object) => envelope)
    const { queue, sent, work } = await queueing({
      admission: { headers: ['X-Trace', 'X-Missing'], toJob },
    })
    const jobs: Job[] = []
    work((job) => void jobs.push(job))
    expect(await sent(post({ headers: { 'x-trace': 'abc', cookie: 'secret' } }))).toEqual([202])
    await until('the job runs', () => jobs.length === 1)
    const identity = queue.digestOf('@key/ada')
    const envelope = toJob.mock.calls[0]?.[0]
    expect(envelope).toMatchObject({ headers: { 'x-trace': 'abc' }, identity })
    expect(jobs).toMatchObject([{ payload: envelope, identity }])
    expect(JSON.stringify(jobs)).not.toMatch(/secret|cookie|x-missing/)
  })

  it('creates jobs by a function, whose errors go to the application', async () => {
    const onError = vi.fn()
    const { sent, work } = await queueing({
      onError,
      admission: {
        toJob: async ({ body }, { headers }) => {
          if (headers['x-fail'] === '1') raise('no job')
          if (headers['x-fail']) return { at: 10n }
          return { of: headers['x-api-key'], body }
        },
      },
    })
    const ran = vi.fn()
    work(({ payload }) => ran(payload))
    expect(await sent(post())).toEqual([202])
    await until('the job runs', () => ran.mock.calls.length === 1)
    expect(ran).toHaveBeenCalledWith({ of: 'ada', body: { page: 1 } })
    const failing = ['1', '2'].map((fail) => post({ headers: { 'x-fail': fail } }))
    expect(await sent(...failing)).toEqual([500, 500])
    const codes = onError.mock.calls.map(([{ code }]) => code)
    expect(codes).toEqual([undefined, 'SLUICE_PAYLOAD_INVALID'])
  })

  it('reports that a job failed, expired, or never existed', async () => {
    const { app, send, work } = await queueing({ queue: { maxAge: '1m' } })
    const late = idOf(await send())
    vi.setSystemTime(Date.now() + 60_000)
    const id = idOf(await send())
    work(() => raise('the password is 1234'))
    await reaches(app, id, 'failed')
    const failed = await look(app, id)
    expect(failed.status).toBe(500)
    expect(failed.field('content-type')).toBe('application/problem+json')
    expect(JSON.parse(failed.body)).toMatchObject({ status: 500, id, 'job-status': 'failed' })
    expect(failed.body).not.toContain('1234')
    expect((await look(app, late)).status).toBe(410)
    expect((await look(app, 'nobody')).status).toBe(404)
    expect((await app.ask(`/jobs/${id}`, remove(ada))).status).toBe(409)
    const posted = await app.ask(`/jobs/${id}`, { method: 'POST', headers: ada })
    expect([posted.status, posted.field('allow')]).toEqual([405, 'GET, HEAD, DELETE'])
  })

  it('queues requests that no limit applies to, since nobody else is there to do them', async () => {
    const limits = { limit: 1, window: '1m', skip: () => true } as const
    const { reached, sent } = await queueing({ limits })
    expect(await sent(post(), post(), post())).toEqual([202, 202, 202])
    expect(reached).not.toHaveBeenCalled()
  })

  it('refuses with 503 when the broker fails, and charges nothing', async () => {
    vi.spyOn(console, 'warn').mockReturnValue()
    const { app, broker, send, sent } = await queueing()
    await broker.close()
    const refused = await send()
    expect([refused.status, refused.field('retry-after')]).toEqual([503, '5'])
    expect(refused.field('content-type')).toBe('application/problem+json')
    expect(await sent(...Array(5).fill(keyed('"1"')))).toEqual(Array(5).fill(503))
    expect((await look(app, '3f0c2b9e-6d0b-4a34-9a55-6c0f8f6c2a11')).status).toBe(503)
  })
}
