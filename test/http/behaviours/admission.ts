import { SluiceError } from '@sluice/core'
import { apiKey, firstOf, ip } from '@sluice/http'
import {
  createAdmission,
  createQueue,
  type Job,
  memoryBroker,
  type Queue,
  statusMonitor,
} from '@sluice/queue'
import { expect, it, vi } from 'vitest'
import type { Behaviour } from '../../adapters/adapter-conformance.ts'
import type { Question } from '../../adapters/ask.ts'
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
import { until } from '../../support/until.ts'

/** What becomes of requests that are queued, whose their jobs are, and what the monitor shows. */
export const admission: Behaviour = ({ start }) => {
  const queueing = (setup?: QueueingSetup) => startQueueing(start, setup)
  const bob = { 'x-api-key': 'bob' }
  const nobody = { 'x-api-key': '' }
  const remove = (headers: Record<string, string>) => ({ method: 'DELETE', headers }) as const

  it('keeps the jobs and idempotency keys of two users behind one address apart', async () => {
    const { app, work } = await queueing({ limits: { limit: 9, window: '1m', key: apiKey() } })
    const id = idOf(await app.ask('/reports', keyed('"1"')))
    const other = await app.ask('/reports', keyed('"1"', { headers: bob }))
    expect(other.status).toBe(202)
    expect(idOf(other)).not.toBe(id)
    expect((await look(app, id, bob)).status).toBe(404)
    expect((await app.ask(`/jobs/${id}`, remove(bob))).status).toBe(404)
    work(() => 'of ada')
    await reaches(app, id, 'done')
    expect((await look(app, id, bob)).status).toBe(404)
    expect((await app.ask('/reports', keyed('"1"', { headers: bob }))).body).not.toContain(id)
  })

  it('has no jobs for a request without a key: it neither makes one, nor sees or cancels any', async () => {
    const { app, queue, reached } = await queueing()
    const id = idOf(await app.ask('/reports', keyed('"1"')))
    const refused = await app.ask('/reports', keyed('"1"', { headers: nobody }))
    expect(refused.status).toBe(403)
    expect(refused.field('content-type')).toBe('application/problem+json')
    expect(refused.body).not.toContain(id)
    expect((await look(app, id, nobody)).status).toBe(404)
    expect((await app.ask(`/jobs/${id}`, remove(nobody))).status).toBe(404)
    expect(reached).not.toHaveBeenCalled()
    expect(await queue.depth()).toMatchObject({ depth: 1 })
  })

  it.each(['overflow', 'preferred'] as const)(
    'lets a request without a key pass that need not be queued: %s',
    async (admit) => {
      const limits = { limit: 1, window: '1m' } as const
      const { app, queue } = await queueing({ admission: { admit }, limits })
      const headers = { ...nobody, prefer: 'respond-async' }
      expect(await app.statuses(2, '/reports', keyed('"1"', { headers }))).toEqual([200, 429])
      expect(await queue.depth()).toMatchObject({ depth: 0 })
    },
  )

  it('shares jobs by address only where the application says so', async () => {
    const identity = firstOf<NativeRequest>(apiKey(), ip())
    const { app } = await queueing({ queue: { identity } })
    const id = idOf(await app.ask('/reports', post({ headers: nobody })))
    expect((await look(app, id, nobody)).status).toBe(200)
    expect((await look(app, id)).status).toBe(404)
    const own = idOf(await app.ask('/reports', post()))
    expect((await look(app, own, nobody)).status).toBe(404)
    expect((await look(app, own, { 'x-api-key': '@ip/127.0.0.1' })).status).toBe(404)
  })

  it('needs no limits before the monitor, which knows by itself whose a job is', async () => {
    const queue = createQueue<NativeRequest>({ broker: memoryBroker(), identity: apiKey() })
    const app = await start({ mounts: [['/jobs', statusMonitor({ queue: queue as Queue })]] })
    const made = await queue.enqueue({ identity: '@key/ada', payload: null })
    const id = 'id' in made ? made.id : ''
    expect((await look(app, id)).status).toBe(200)
    expect((await look(app, id, bob)).status).toBe(404)
    expect((await look(app, id, nobody)).status).toBe(404)
    expect((await app.ask(`/jobs/${id}`, remove(bob))).status).toBe(404)
    expect((await app.ask(`/jobs/${id}`, remove(ada))).status).toBe(200)
  })

  it('does not guess whose requests are', () => {
    vi.spyOn(console, 'warn').mockReturnValue()
    const queue = createQueue({ broker: memoryBroker() })
    const message = /^queue must know whose a request is: .*identity: apiKey\({ verify }\)/
    expect(() => createAdmission({ queue, monitor: '/jobs' })).toThrow(message)
    expect(() => statusMonitor({ queue })).toThrow(message)
  })

  it('A02, A03: the monitor tells that a job waits, runs, and is done', async () => {
    const { app, work } = await queueing()
    const id = idOf(await app.ask('/reports', post()))
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
    'shows the result itself where its place would be %j',
    async (url) => {
      vi.spyOn(console, 'warn').mockReturnValue()
      const resultUrl = () => url as string
      const { app, work } = await queueing({ queue: { resultUrl } })
      work(() => 'here')
      const id = idOf(await app.ask('/reports', post()))
      await reaches(app, id, 'done')
      const done = await look(app, id)
      expect(done.status).toBe(200)
      expect(JSON.parse(done.body)).toEqual({ id, status: 'done', result: 'here' })
    },
  )

  it('A04: refuses whoever looks too often, which changes nothing for the job', async () => {
    const { app, work } = await queueing({ monitor: { poll: { limit: 1, window: '1m' } } })
    const id = idOf(await app.ask('/reports', post()))
    expect((await look(app, id)).status).toBe(200)
    const refused = await look(app, id)
    expect(refused.status).toBe(429)
    expect(refused.field('retry-after')).toBe('60')
    expect(refused.field('content-type')).toBe('application/problem+json')
    expect(JSON.parse(refused.body)['violated-policies']).toEqual(['poll'])
    const other = await look(app, id, { 'x-api-key': 'bob' })
    expect(other.status).toBe(404)
    const ran = vi.fn()
    work(ran)
    await until('the job runs', () => ran.mock.calls.length === 1)
  })

  it('A05: answers 202 where the outcome cannot be looked up: the job was accepted', async () => {
    vi.spyOn(console, 'warn').mockReturnValue()
    const { app, broker } = await queueing()
    const failure = new SluiceError('SLUICE_BROKER_FAILED', 'it did not answer')
    const lookUp = vi.spyOn(broker, 'status').mockRejectedValue(failure)
    const waited = await app.ask('/reports', keyed('"1"', { headers: { prefer: 'wait=10' } }))
    expect(waited.status).toBe(202)
    expect(lookUp).toHaveBeenCalled()
    const again = await app.ask('/reports', keyed('"1"'))
    expect(again.status).toBe(202)
    expect(idOf(again)).toBe(idOf(waited))
  })

  it('holds a lease while a request is taken, and no longer', async () => {
    const { app } = await queueing({ limits: { algorithm: 'concurrency', limit: 1 } })
    expect(await app.statuses(3, '/reports', post())).toEqual([202, 202, 202])
    const prefer = 'respond-async, wait=1'
    const waits = app.ask('/reports', post({ headers: { prefer } }))
    await until('the answer is 429', async () => (await app.ask('/reports', post())).status === 429)
    vi.setSystemTime(Date.now() + 1_000)
    expect((await waits).status).toBe(202)
    await until('the answer is 202', async () => (await app.ask('/reports', post())).status === 202)
  })

  it('keeps no lease of a request of which it cannot know whether it was queued', async () => {
    let isKnown = false
    const { app } = await queueing({
      queue: {
        identity: async () => {
          if (!isKnown) throw new Error('nobody knows')
          return 'ada'
        },
      },
      admission: { admit: 'preferred' },
      limits: { algorithm: 'concurrency', limit: 1 },
    })
    const again = post({ headers: { 'idempotency-key': 'order-1' } })
    expect((await app.ask('/reports', again)).status).toBe(500)
    isKnown = true
    expect((await app.ask('/reports', again)).status).toBe(200)
  })

  it('refuses with 503 when the queue is full, and charges nothing', async () => {
    const { app, queue, work } = await queueing({ queue: { maxDepth: 1 } })
    expect((await app.ask('/reports', post())).status).toBe(202)
    const full = await app.ask('/reports', post())
    expect(full.status).toBe(503)
    expect(full.field('retry-after')).toBe('5')
    expect(full.field('content-type')).toBe('application/problem+json')
    await app.statuses(5, '/reports', post())
    work(() => null)
    await until('the queue is empty', async () => (await queue.depth()).depth === 0)
    expect((await app.ask('/reports', post())).status).toBe(202)
  })

  it('charges requests that are wrong, so that nobody floods for free', async () => {
    const { app, work } = await queueing({
      limits: { limit: 8, window: '1m' },
      admission: { maxBodyBytes: 100, idempotency: { whileRunning: 'conflict' } },
    })
    work(() => {
      throw new Error('never')
    })
    const failing = await app.ask('/reports', keyed('"1"'))
    await reaches(app, idOf(failing), 'failed')
    const large = `["${'x'.repeat(200)}"]`
    const wrong: [number, Question][] = [
      [400, post({ body: '{"page":' })],
      [400, keyed('"open')],
      [413, post({ body: large })],
      [415, post({ headers: { 'content-encoding': 'gzip' } })],
      [422, keyed('"1"', { body: '{"page":2}' })],
      [500, keyed('"1"')],
      [500, keyed('"1"')],
      [429, post()],
    ]
    for (const [status, question] of wrong) {
      expect((await app.ask('/reports', question)).status).toBe(status)
    }
  })

  it('charges who asks again while the job runs', async () => {
    const { app } = await queueing({
      limits: { limit: 2, window: '1m' },
      admission: { idempotency: { whileRunning: 'conflict' } },
    })
    expect(await app.statuses(3, '/reports', keyed('"1"'))).toEqual([202, 409, 429])
  })

  it('refuses with 429 who alone would fill the queue', async () => {
    const { app } = await queueing({ queue: { maxDepth: 10 } })
    expect(await app.statuses(2, '/reports', post())).toEqual([202, 429])
    const bob = post({ headers: { 'x-api-key': 'bob' } })
    expect((await app.ask('/reports', bob)).status).toBe(202)
  })

  it('carries the headers that it is told to, and whose the request is, without its key', async () => {
    const envelopes: unknown[] = []
    const { app, queue, work } = await queueing({
      admission: {
        headers: ['X-Trace', 'X-Missing'],
        toJob: (envelope) => {
          envelopes.push(envelope)
          return envelope
        },
      },
    })
    const jobs: Job[] = []
    work((job) => void jobs.push(job))
    const headers = { 'x-trace': 'abc', cookie: 'secret' }
    expect((await app.ask('/reports', post({ headers }))).status).toBe(202)
    await until('the job runs', () => jobs.length === 1)
    const identity = queue.digestOf('@key/ada')
    expect(envelopes).toMatchObject([{ headers: { 'x-trace': 'abc' }, identity }])
    expect(jobs).toMatchObject([{ payload: envelopes[0], identity }])
    expect(JSON.stringify(jobs)).not.toMatch(/secret|cookie|x-missing/)
  })

  it('has jobs made by a function, whose error is one of the application', async () => {
    const onError = vi.fn()
    const { app, work } = await queueing({
      onError,
      admission: {
        toJob: async ({ body }, { headers }) => {
          if (headers['x-fail']) throw new Error('no job')
          return { of: headers['x-api-key'], body }
        },
      },
    })
    const ran = vi.fn()
    work(({ payload }) => ran(payload))
    expect((await app.ask('/reports', post())).status).toBe(202)
    await until('the job runs', () => ran.mock.calls.length === 1)
    expect(ran).toHaveBeenCalledWith({ of: 'ada', body: { page: 1 } })
    expect((await app.ask('/reports', post({ headers: { 'x-fail': '1' } }))).status).toBe(500)
    expect(onError).toHaveBeenCalledTimes(1)
  })

  it('tells that a job failed, expired, or was never there', async () => {
    const { app, work } = await queueing({ queue: { maxAge: '1m' } })
    const late = idOf(await app.ask('/reports', post()))
    vi.setSystemTime(Date.now() + 60_000)
    const failing = idOf(await app.ask('/reports', post()))
    work(() => {
      throw new Error('the password is 1234')
    })
    await reaches(app, failing, 'failed')
    const failed = await look(app, failing)
    expect(failed.status).toBe(500)
    expect(failed.field('content-type')).toBe('application/problem+json')
    expect(JSON.parse(failed.body)).toMatchObject({
      status: 500,
      id: failing,
      'job-status': 'failed',
    })
    expect(failed.body).not.toContain('1234')
    expect((await look(app, late)).status).toBe(410)
    expect((await look(app, 'nobody')).status).toBe(404)
    const finished = await app.ask(`/jobs/${failing}`, { method: 'DELETE', headers: ada })
    expect(finished.status).toBe(409)
    const posted = await app.ask(`/jobs/${failing}`, { method: 'POST', headers: ada })
    expect(posted.status).toBe(405)
    expect(posted.field('allow')).toBe('GET, HEAD, DELETE')
  })

  it('queues requests that no limit applies to, since nobody else is there to do them', async () => {
    const { app, reached } = await queueing({
      limits: { limit: 1, window: '1m', skip: () => true },
    })
    expect(await app.statuses(3, '/reports', post())).toEqual([202, 202, 202])
    expect(reached).not.toHaveBeenCalled()
  })

  it('refuses with 503 when the broker fails', async () => {
    vi.spyOn(console, 'warn').mockReturnValue()
    const { app, broker } = await queueing()
    await broker.close()
    const refused = await app.ask('/reports', post())
    expect(refused.status).toBe(503)
    expect(refused.field('retry-after')).toBe('5')
    const unknown = await look(app, '3f0c2b9e-6d0b-4a34-9a55-6c0f8f6c2a11')
    expect(unknown.status).toBe(503)
  })
}
