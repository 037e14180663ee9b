import { SluiceError } from '@sluice/core'
import type { Job } from '@sluice/queue'
import { expect, it, vi } from 'vitest'
import { until } from '../../support/until.ts'
import type { Behaviour } from '../adapter-conformance.ts'
import type { Question } from '../ask.ts'
import {
  ada,
  idOf,
  keyed,
  look,
  post,
  type QueueingSetup,
  reaches,
  startQueueing,
} from '../queueing-app.ts'

/** Requests that are queued, and answered with 202; and the monitor that shows them. */
export const admission: Behaviour = ({ driver, start }) => {
  const queueing = (setup?: QueueingSetup) => startQueueing(start, setup)

  it.each([false, true])(
    'A01: answers 202 with where the job can be watched; bodies parsed: %s',
    async (parsesBodies) => {
      const { app, reached, work } = await queueing({ parsesBodies })
      const jobs = vi.fn()
      work(({ payload, identity }) => jobs(payload, identity))
      const answer = await app.ask('/reports?format=pdf', post({ headers: { cookie: 'secret' } }))

      expect(answer.status).toBe(202)
      const id = idOf(answer)
      expect(id.length).toBeGreaterThan(30)
      expect(JSON.parse(answer.body)).toEqual({ id, status: 'pending', monitor: `/jobs/${id}` })
      expect(answer.field('location')).toBe(`/jobs/${id}`)
      expect(answer.field('retry-after')).toMatch(/^[1-9]\d*$/)
      expect(answer.field('cache-control')).toBe('no-store')
      expect(answer.field('ratelimit')).toContain(';r=4;')
      expect(answer.field('content-type')).toBe('application/json')
      await reaches(app, id, 'done')
      expect(jobs.mock.calls[0]?.[0]).toMatchObject({
        method: 'POST',
        url: '/reports?format=pdf',
        headers: { 'content-type': 'application/json' },
        body: { page: 1 },
      })
      expect(jobs.mock.calls[0]?.[1]).toMatch(/^[\w-]{43}$/)
      expect(JSON.stringify(jobs.mock.calls)).not.toMatch(/secret|ada/)
      expect(reached).not.toHaveBeenCalled()
    },
  )

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

  it('A03: sends clients to the result where it has a place of its own', async () => {
    const resultUrl = ({ id }: { id: string }) => `/results/${id}`
    const { app, work } = await queueing({ queue: { resultUrl } })
    work(() => null)
    const id = idOf(await app.ask('/reports', post()))
    await reaches(app, id, 'done')
    const done = await look(app, id)
    expect(done.status).toBe(303)
    expect(done.field('location')).toBe(`/results/${id}`)
  })

  it('A03: sends there too who waited for the result, or asks for it again', async () => {
    const resultUrl = async ({ id }: { id: string }) => `https://example.com/results/${id}`
    const { app, work } = await queueing({ queue: { resultUrl } })
    work(() => null)
    const waited = await app.ask('/reports', keyed('"1"', { headers: { prefer: 'wait=10' } }))
    const { id } = JSON.parse(waited.body)
    const again = await app.ask('/reports', keyed('"1"'))
    for (const answer of [waited, again, await look(app, id)]) {
      expect(answer.status).toBe(303)
      expect(answer.field('location')).toBe(`https://example.com/results/${id}`)
      expect(JSON.parse(answer.body)).toEqual({ id, status: 'done' })
    }
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

  it('A05: answers with the result where the client would rather wait, and it comes in time', async () => {
    const { app, work } = await queueing()
    work(() => 'at once')
    const prefer = 'respond-async, wait=10'
    const answer = await app.ask('/reports', post({ headers: { prefer } }))
    expect(answer.status).toBe(200)
    expect(JSON.parse(answer.body)).toMatchObject({ status: 'done', result: 'at once' })
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

  it('holds as many requests as it may, as long as it may, and none whose client has left', async () => {
    const { app, work } = await queueing({
      limits: { limit: 1_000, window: '1m' },
      queue: { maxDepth: 1_000, maxDepthPerIdentity: 1_000 },
      admission: { maxHeld: 1, maxWait: '1s' },
    })
    work(({ payload }) =>
      JSON.stringify(payload).includes('"page":2') ? 'at once' : new Promise(() => undefined),
    )
    const soon = post({ body: '{"page":2}', headers: { prefer: 'wait=100' } })
    const never = post({ headers: { prefer: 'wait=100' } })
    expect((await app.ask('/reports', soon)).status).toBe(200)

    const leaving = new AbortController()
    const left = app.ask('/reports', { ...never, signal: leaving.signal })
    left.catch(() => undefined)
    await until('the answer is 202', async () => (await app.ask('/reports', soon)).status === 202)
    leaving.abort()
    await until('the answer is 200', async () => (await app.ask('/reports', soon)).status === 200)

    const waits = app.ask('/reports', never)
    await until('the answer is 202', async () => (await app.ask('/reports', soon)).status === 202)
    vi.setSystemTime(Date.now() + 1_000)
    expect((await waits).status).toBe(202)
  })

  it('A06: turns nothing into 202 unless it is asked for, or set', async () => {
    const { app, reached } = await queueing({ admission: { admit: 'preferred' } })
    expect((await app.ask('/reports', post())).status).toBe(200)
    expect(reached).toHaveBeenCalledTimes(1)
    const asked = await app.ask('/reports', post({ headers: { prefer: 'respond-async' } }))
    expect(asked.status).toBe(202)
    expect(asked.field('preference-applied')).toBe('respond-async')
    expect(await app.statuses(4, '/reports', post())).toEqual([200, 200, 200, 429])
  })

  it('tells caches that the answer to a GET depends on Prefer', async () => {
    const { app } = await queueing({
      admission: { admit: 'preferred' },
      before: { vary: 'Origin' },
    })
    const passed = await app.ask('/reports', { headers: ada })
    expect(passed.status).toBe(200)
    expect(passed.field('vary')).toBe('Origin, Prefer')
    const queued = await app.ask('/reports', { headers: { ...ada, prefer: 'respond-async' } })
    expect(queued.status).toBe(202)
    expect(queued.field('vary')).toBe(driver.refusesAlone ? 'Prefer' : 'Origin, Prefer')
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

  it('refuses as without a queue what is over the limit where all is queued that is not', async () => {
    const { app } = await queueing({ limits: { limit: 1, window: '1m' } })
    expect(await app.statuses(2, '/reports', post())).toEqual([202, 429])
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

  it.each([
    [false, 'stream'],
    [true, 'parsed'],
  ])('413: refuses a body that is too large; parsed: %s', async (parsesBodies) => {
    const { app } = await queueing({ parsesBodies, admission: { maxBodyBytes: 100 } })
    const body = JSON.stringify('x'.repeat(200))
    const wrapped = `[${body}]`
    expect((await app.ask('/reports', post({ body: wrapped }))).status).toBe(413)
    const chunked = { 'transfer-encoding': 'chunked' }
    expect((await app.ask('/reports', post({ body: wrapped, headers: chunked }))).status).toBe(413)
    expect((await app.ask('/reports', post())).status).toBe(202)
  })

  it('carries texts and bytes, and refuses what is not what it says', async () => {
    const { app, work } = await queueing()
    const bodies: unknown[] = []
    work(({ payload }) => void bodies.push(payload))
    const send = (type: string, body: string | Uint8Array) =>
      app.ask('/reports', post({ body, headers: { 'content-type': type } }))
    expect((await send('text/plain', 'grüße')).status).toBe(202)
    expect((await send('application/octet-stream', new Uint8Array([0, 255]))).status).toBe(202)
    expect((await send('application/json', '{"page":')).status).toBe(400)
    await until('both have run', () => bodies.length === 2)
    expect(bodies).toMatchObject([{ body: 'grüße' }, { body: 'AP8=', encoding: 'base64' }])
    const gzipped = { 'content-encoding': 'gzip' }
    expect((await app.ask('/reports', post({ headers: gzipped }))).status).toBe(415)
  })

  it.each([false, true])(
    'refuses a body that is nested too deeply; bodies parsed: %s',
    async (parsesBodies) => {
      const onError = vi.fn()
      const { app } = await queueing({ parsesBodies, onError })
      const nested = (levels: number) =>
        post({ body: `${'['.repeat(levels)}${']'.repeat(levels)}` })
      expect((await app.ask('/reports', nested(30_000))).status).toBe(400)
      expect((await app.ask('/reports', nested(501))).status).toBe(400)
      expect((await app.ask('/reports', nested(500))).status).toBe(202)
      expect(onError).not.toHaveBeenCalled()
    },
  )

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

  it('leaves to the framework what no job can carry', async () => {
    const onError = vi.fn()
    const { app } = await queueing({ onError, admission: { toJob: () => ({ at: 10n }) } })
    expect((await app.ask('/reports', post())).status).toBe(500)
    expect(onError.mock.calls[0]?.[0]).toMatchObject({ code: 'SLUICE_PAYLOAD_INVALID' })
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

  it('shows and cancels a job for nobody but whom it is of', async () => {
    const { app } = await queueing()
    const id = idOf(await app.ask('/reports', post()))
    const bob = { 'x-api-key': 'bob' }
    expect((await look(app, id, bob)).status).toBe(404)
    expect((await look(app, id, {})).status).toBe(404)
    const cancel = (headers: Question['headers']) =>
      app.ask(`/jobs/${id}`, { method: 'DELETE', ...(headers ? { headers } : {}) })
    expect((await cancel(bob)).status).toBe(404)
    const cancelled = await cancel(ada)
    expect(cancelled.status).toBe(200)
    expect(JSON.parse(cancelled.body)).toEqual({ id, status: 'cancelled' })
    expect(JSON.parse((await look(app, id)).body)).toEqual({ id, status: 'cancelled' })
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
