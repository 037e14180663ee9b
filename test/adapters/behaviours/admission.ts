import { memoryStore } from '@sluice/core'
import { apiKey } from '@sluice/http'
import {
  type AdmissionOptions,
  createAdmission,
  createQueue,
  createWorker,
  type JobHandler,
  memoryBroker,
  type Queue,
  type QueueOptions,
  type StatusMonitorOptions,
  statusMonitor,
} from '@sluice/queue'
import { expect, it, onTestFinished, vi } from 'vitest'
import type { App, Behaviour } from '../adapter-conformance.ts'
import type { Answer, Question } from '../ask.ts'
import type { AppSetup, Limits, NativeRequest } from '../drivers/driver.ts'
import { until } from '../until.ts'

interface Setup extends Omit<AppSetup, 'limits'> {
  readonly queue?: Partial<QueueOptions<NativeRequest>>
  readonly admission?: Partial<AdmissionOptions<NativeRequest>>
  readonly monitor?: Partial<StatusMonitorOptions>
  readonly limits?: Limits
}

const ada = { 'x-api-key': 'ada' }
const post = (fields: Partial<Question> = {}): Question => ({
  method: 'POST',
  body: '{"page":1}',
  ...fields,
  headers: { ...ada, 'content-type': 'application/json', ...fields.headers },
})

/** Requests that are queued, and answered with 202; and the monitor that shows them. */
export const admission: Behaviour = ({ start }) => {
  async function queueing({
    queue: own,
    admission,
    monitor,
    limits: ownLimits,
    ...setup
  }: Setup = {}) {
    const broker = memoryBroker()
    const queue: Queue<NativeRequest> = createQueue<NativeRequest>({
      broker,
      identity: apiKey(),
      ...own,
    })
    const reached = vi.fn()
    const limits: Limits = {
      ...(ownLimits ?? { limit: 5, window: '1m' }),
      admission: createAdmission({ queue, monitor: '/jobs', ...admission }),
    }
    const app = await start({
      mounts: [['/jobs', statusMonitor({ queue: queue as Queue, ...monitor })]],
      routes: [
        { method: 'POST', path: '/reports', reached, limits },
        { method: 'GET', path: '/reports', reached, limits },
      ],
      ...setup,
    })
    function work(handler: JobHandler): void {
      const worker = createWorker({ broker, handler, attempts: 1 })
      onTestFinished(() => worker.close({ grace: 1 }))
    }
    return { app, queue, broker, reached, work }
  }

  const idOf = ({ body }: Answer): string => JSON.parse(body).id
  const look = (app: App, id: string, headers: Question['headers'] = ada): Promise<Answer> =>
    app.ask(`/jobs/${id}`, { headers })
  const reaches = (app: App, id: string, state: string): Promise<void> =>
    until(async () => (await look(app, id)).body.includes(`"${state}"`))

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
    await until(() => finish !== undefined)
    finish?.({ pages: 3 })
    await reaches(app, id, 'done')
    const done = await look(app, id)
    expect(JSON.parse(done.body)).toEqual({ id, status: 'done', result: { pages: 3 } })
    expect(done.field('retry-after')).toBeUndefined()
  })

  it('A03: sends clients to the result where it has a place of its own', async () => {
    const resultUrl = ({ id }: { id: string }) => `/results/${id}`
    const { app, work } = await queueing({ monitor: { resultUrl } })
    work(() => null)
    const id = idOf(await app.ask('/reports', post()))
    await reaches(app, id, 'done')
    const done = await look(app, id)
    expect(done.status).toBe(303)
    expect(done.field('location')).toBe(`/results/${id}`)
  })

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
    await until(() => ran.mock.calls.length === 1)
  })

  it('A05: answers with the result where the client would rather wait, and it comes in time', async () => {
    const { app, work } = await queueing()
    work(() => 'at once')
    const prefer = 'respond-async, wait=10'
    const answer = await app.ask('/reports', post({ headers: { prefer } }))
    expect(answer.status).toBe(200)
    expect(JSON.parse(answer.body)).toMatchObject({ status: 'done', result: 'at once' })
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
    expect(queued.field('vary')).toBe('Origin, Prefer')
  })

  it('queues what is over a soft limit, and refuses what is over a hard one, which counts what is queued', async () => {
    const store = memoryStore()
    const { app, reached } = await queueing({
      admission: { admit: 'overflow', soft: ['soft'] },
      limits: {
        store,
        policies: [
          { name: 'soft', limit: 2, window: '1m' },
          { name: 'hard', limit: 4, window: '1m' },
        ],
      },
    })
    expect(await app.statuses(6, '/reports', post())).toEqual([200, 200, 202, 202, 429, 429])
    expect(reached).toHaveBeenCalledTimes(2)
    const refused = await app.ask('/reports', post())
    expect(JSON.parse(refused.body)['violated-policies']).toEqual(['soft', 'hard'])
  })

  it('refuses whom a penalty blocks, who is not over a soft limit', async () => {
    const { app } = await queueing({
      admission: { admit: 'overflow' },
      limits: { limit: 1, window: '1m', penalty: { after: 2, within: '1m', for: '5m' } },
    })
    expect(await app.statuses(4, '/reports', post())).toEqual([200, 202, 429, 429])
  })

  it('holds a lease while a request is taken, and no longer', async () => {
    const { app } = await queueing({ limits: { algorithm: 'concurrency', limit: 1 } })
    expect(await app.statuses(3, '/reports', post())).toEqual([202, 202, 202])
    const prefer = 'respond-async, wait=1'
    const waits = app.ask('/reports', post({ headers: { prefer } }))
    await until(async () => (await app.ask('/reports', post())).status === 429)
    vi.setSystemTime(Date.now() + 1_000)
    expect((await waits).status).toBe(202)
    await until(async () => (await app.ask('/reports', post())).status === 202)
  })

  it('does not confuse policies in shadow with those that are enforced', async () => {
    const { app } = await queueing({
      admission: { admit: 'overflow', soft: ['soft'] },
      limits: {
        policies: [
          { name: 'trial', limit: 0, window: '1m', mode: 'shadow' },
          { name: 'soft', limit: 1, window: '1m' },
          { name: 'hard', limit: 2, window: '1m' },
        ],
      },
    })
    expect(await app.statuses(4, '/reports', post())).toEqual([200, 202, 429, 429])
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
    await until(async () => (await queue.depth()).depth === 0)
    expect((await app.ask('/reports', post())).status).toBe(202)
  })

  it('refuses with 429 who alone would fill the queue', async () => {
    const { app } = await queueing({ queue: { maxDepth: 10 } })
    expect(await app.statuses(2, '/reports', post())).toEqual([202, 429])
    const bob = post({ headers: { 'x-api-key': 'bob' } })
    expect((await app.ask('/reports', bob)).status).toBe(202)
  })

  it('refuses what is over a soft limit while the queue is full, and names the longer wait', async () => {
    const { app } = await queueing({
      queue: { maxDepth: 1 },
      admission: { admit: 'overflow' },
      limits: { limit: 1, window: '2s' },
    })
    expect(await app.statuses(2, '/reports', post())).toEqual([200, 202])
    const refused = await app.ask('/reports', post())
    expect(refused.status).toBe(429)
    expect(refused.field('retry-after')).toBe('5')
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
    await until(() => bodies.length === 2)
    expect(bodies).toMatchObject([{ body: 'grüße' }, { body: 'AP8=', encoding: 'base64' }])
    const gzipped = { 'content-encoding': 'gzip' }
    expect((await app.ask('/reports', post({ headers: gzipped }))).status).toBe(415)
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
    await until(() => ran.mock.calls.length === 1)
    expect(ran).toHaveBeenCalledWith({ of: 'ada', body: { page: 1 } })
    expect((await app.ask('/reports', post({ headers: { 'x-fail': '1' } }))).status).toBe(500)
    expect(onError).toHaveBeenCalledTimes(1)
  })

  const key = (value: string, fields: Partial<Question> = {}): Question =>
    post({ ...fields, headers: { 'idempotency-key': value, ...fields.headers } })

  it('I01: refuses a request without a key where one is required', async () => {
    const { app } = await queueing({ admission: { idempotency: { required: true } } })
    const answer = await app.ask('/reports', post())
    expect(answer.status).toBe(400)
    expect(answer.field('content-type')).toBe('application/problem+json')
    expect((await app.ask('/reports', key('"1"'))).status).toBe(202)
  })

  it('I02: same key while the first runs: the same job, or 409', async () => {
    const { app } = await queueing()
    const first = idOf(await app.ask('/reports', key('"1"')))
    const again = await app.ask('/reports', key('"1"'))
    expect(again.status).toBe(202)
    expect(idOf(again)).toBe(first)
    const strict = await queueing({ admission: { idempotency: { whileRunning: 'conflict' } } })
    await strict.app.ask('/reports', key('"1"'))
    const conflict = await strict.app.ask('/reports', key('"1"'))
    expect(conflict.status).toBe(409)
    expect(conflict.field('retry-after')).toBe('1')
  })

  it('I03: same key, other payload: 422', async () => {
    const { app } = await queueing()
    await app.ask('/reports', key('"1"'))
    expect((await app.ask('/reports', key('"1"', { body: '{"page":2}' }))).status).toBe(422)
    expect((await app.ask('/reports?page=2', key('"1"'))).status).toBe(422)
    const bob = key('"1"', { body: '{"page":2}', headers: { 'x-api-key': 'bob' } })
    expect((await app.ask('/reports', bob)).status).toBe(202)
  })

  it('I04: same key after the end: the outcome, with the limits of this request', async () => {
    const { app, work } = await queueing()
    const ran = vi.fn(() => 'once')
    work(ran)
    const id = idOf(await app.ask('/reports', key('"1"')))
    await reaches(app, id, 'done')
    const replay = await app.ask('/reports', key('"1"'))
    expect(replay.status).toBe(200)
    expect(JSON.parse(replay.body)).toEqual({ id, status: 'done', result: 'once' })
    expect(replay.field('ratelimit')).toContain(';r=3;')
    expect(ran).toHaveBeenCalledTimes(1)
  })

  it('I05: a key that was refused by a limit is as new', async () => {
    const { app, queue } = await queueing({ limits: { limit: 1, window: '1m' } })
    expect(await app.statuses(1, '/reports', post())).toEqual([202])
    expect((await app.ask('/reports', key('"1"'))).status).toBe(429)
    vi.setSystemTime(Date.now() + 60_000)
    expect((await app.ask('/reports', key('"1"'))).status).toBe(202)
    expect((await queue.depth()).depth).toBe(2)
  })

  it('I07: takes a key without quotes for the same, unless it is strict', async () => {
    const { app } = await queueing()
    const uuid = '8e03978e-40d5-43e8-bc93-6894a57f9324'
    const first = idOf(await app.ask('/reports', key(`"${uuid}"`)))
    expect(idOf(await app.ask('/reports', key(uuid)))).toBe(first)
    expect((await app.ask('/reports', key('"open'))).status).toBe(400)
    const strict = await queueing({ admission: { idempotency: { strict: true } } })
    expect((await strict.app.ask('/reports', key(uuid))).status).toBe(400)
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
