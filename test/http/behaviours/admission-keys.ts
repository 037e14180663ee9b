import { apiKey } from '@sluice/http'
import { describe, expect, it, vi } from 'vitest'
import type { Behaviour } from '../../adapters/adapter-conformance.ts'
import type { Limits } from '../../adapters/drivers/driver.ts'
import {
  ada,
  idOf,
  keyed,
  post,
  type QueueingSetup,
  reaches,
  startQueueing,
} from '../../adapters/queueing-app.ts'

/** What Idempotency-Key means to requests that are queued, or could be. */
export const admissionKeys: Behaviour = ({ start }) => {
  const queueing = (setup?: QueueingSetup) => startQueueing(start, setup)

  it('I01: refuses a request without a key where one is required', async () => {
    const { app } = await queueing({ admission: { idempotency: { required: true } } })
    const answer = await app.ask('/reports', post())
    expect(answer.status).toBe(400)
    expect(answer.field('content-type')).toBe('application/problem+json')
    expect((await app.ask('/reports', keyed('"1"'))).status).toBe(202)
  })

  it('I02: same key while the first runs: the same job, or 409', async () => {
    const { app } = await queueing()
    const first = idOf(await app.ask('/reports', keyed('"1"')))
    const again = await app.ask('/reports', keyed('"1"'))
    expect(again.status).toBe(202)
    expect(idOf(again)).toBe(first)
    const strict = await queueing({ admission: { idempotency: { whileRunning: 'conflict' } } })
    await strict.app.ask('/reports', keyed('"1"'))
    const conflict = await strict.app.ask('/reports', keyed('"1"'))
    expect(conflict.status).toBe(409)
    expect(conflict.field('retry-after')).toBe('1')
  })

  it('I03: same key, other payload: 422', async () => {
    const { app } = await queueing()
    await app.ask('/reports', keyed('"1"'))
    expect((await app.ask('/reports', keyed('"1"', { body: '{"page":2}' }))).status).toBe(422)
    expect((await app.ask('/reports?page=2', keyed('"1"'))).status).toBe(422)
    const bob = keyed('"1"', { body: '{"page":2}', headers: { 'x-api-key': 'bob' } })
    expect((await app.ask('/reports', bob)).status).toBe(202)
  })

  it('I04: same key after the end: the outcome, with the limits of this request', async () => {
    const { app, work } = await queueing()
    const ran = vi.fn(() => 'once')
    work(ran)
    const id = idOf(await app.ask('/reports', keyed('"1"')))
    await reaches(app, id, 'done')
    const replay = await app.ask('/reports', keyed('"1"'))
    expect(replay.status).toBe(200)
    expect(JSON.parse(replay.body)).toEqual({ id, status: 'done', result: 'once' })
    expect(replay.field('ratelimit')).toContain(';r=3;')
    expect(ran).toHaveBeenCalledTimes(1)
  })

  it('I05: a key that was refused by a limit is as new', async () => {
    const { app, queue } = await queueing({ limits: { limit: 1, window: '1m' } })
    expect(await app.statuses(1, '/reports', post())).toEqual([202])
    expect((await app.ask('/reports', keyed('"1"'))).status).toBe(429)
    vi.setSystemTime(Date.now() + 60_000)
    expect((await app.ask('/reports', keyed('"1"'))).status).toBe(202)
    expect((await queue.depth()).depth).toBe(2)
  })

  describe.each(['always', 'overflow', 'preferred'] as const)('over a limit: %s', (admit) => {
    const prefer = 'respond-async'

    /** An application that has queued the request with the key "1", and has no room for others. */
    async function full(setup: QueueingSetup = {}) {
      const policies = [
        { name: 'soft', limit: 1, window: '1m' },
        { name: 'hard', limit: 2, window: '1m' },
      ] as const
      const admission = { admit, ...(admit === 'overflow' ? { soft: ['soft'] } : {}) }
      const limits: Limits = { policies, ...setup.limits }
      const subject = await queueing({ ...setup, limits, admission })
      const ahead = admit === 'overflow' ? ['"0"'] : []
      for (const key of [...ahead, '"1"']) {
        await subject.app.ask('/reports', keyed(key, { headers: { prefer } }))
      }
      const first = await subject.app.ask('/reports', keyed('"1"'))
      subject.reached.mockClear()
      return { ...subject, first }
    }

    it('answers from the job who sends its request again', async () => {
      const { app, first, reached, work } = await full()
      expect(first.status).toBe(202)
      expect(first.field('ratelimit')).toContain(';r=0;')
      const again = await app.ask('/reports', keyed('"1"'))
      expect(again.status).toBe(202)
      expect(idOf(again)).toBe(idOf(first))
      work(() => 'once')
      await reaches(app, idOf(first), 'done')
      const ended = await app.ask('/reports', keyed('"1"'))
      expect(ended.status).toBe(200)
      expect(JSON.parse(ended.body)).toMatchObject({ id: idOf(first), result: 'once' })
      expect(reached).not.toHaveBeenCalled()
    })

    it('refuses the key for another request, of another client, and other keys', async () => {
      const { app, queue } = await full()
      if (admit === 'overflow') await app.ask('/reports', keyed('"2"'))
      const { depth } = await queue.depth()
      const other = keyed('"1"', { body: '{"page":2}' })
      const bob = keyed('"1"', { headers: { 'x-api-key': 'bob' } })
      for (const question of [other, bob, keyed('"3"'), keyed('"open')]) {
        expect((await app.ask('/reports', question)).status).toBe(429)
      }
      expect((await queue.depth()).depth).toBe(depth)
    })

    it('looks for the jobs of one client so often at most', async () => {
      const { app, broker } = await full()
      vi.setSystemTime(Date.now() + 1_000)
      const find = vi.spyOn(broker, 'find')
      const statuses = await app.statuses(25, '/reports', keyed('"1"'))
      expect(statuses).toEqual([...Array(20).fill(202), ...Array(5).fill(429)])
      expect(find).toHaveBeenCalledTimes(20)
    })

    it('refuses while nobody knows of the key', async () => {
      vi.spyOn(console, 'warn').mockReturnValue()
      const { app, broker } = await full()
      await broker.close()
      expect((await app.ask('/reports', keyed('"1"'))).status).toBe(429)
    })

    it('takes it for no denial and no strike, but refuses whom a penalty blocks', async () => {
      const onDecision = vi.fn()
      const penalty = { after: 2, within: '1h', for: '1h' } as const
      const { app } = await full({ limits: { penalty, observers: { onDecision } } })
      expect(await app.statuses(3, '/reports', keyed('"1"'))).toEqual([202, 202, 202])
      expect(onDecision.mock.calls.map(([{ decision }]) => decision.allowed)).not.toContain(false)
      const malformed = keyed('"9"', { body: '{"page":' })
      expect(await app.statuses(2, '/reports', malformed)).toEqual([429, 429])
      const blocked = await app.ask('/reports', keyed('"1"'))
      expect(JSON.parse(blocked.body)).toMatchObject({ title: 'Abnormal Usage Detected' })
    })
  })

  it('I04: the stored answer, where the application says what it is', async () => {
    const { app, work } = await queueing({
      admission: {
        toAnswer: async ({ id, result }) => ({
          status: 201,
          headers: { Location: `/reports/${id}` },
          body: result,
        }),
      },
    })
    const ran = vi.fn(() => ({ pages: 3 }))
    work(ran)
    const prefer = 'wait=10'
    const first = await app.ask('/reports', keyed('"1"', { headers: { prefer } }))
    const replay = await app.ask('/reports', keyed('"1"'))
    for (const answer of [first, replay]) {
      expect(answer.status).toBe(201)
      expect(answer.body).toBe('{"pages":3}')
      expect(answer.field('location')).toMatch(/^\/reports\/.{36}$/)
      expect(answer.field('cache-control')).toBe('no-store')
    }
    expect(first.field('ratelimit')).toContain(';r=4;')
    expect(replay.field('ratelimit')).toContain(';r=3;')
    expect(ran).toHaveBeenCalledTimes(1)
  })

  it('hands on to the error handling what the function of the answer rejects with', async () => {
    const onError = vi.fn()
    const toAnswer = () => Promise.reject(new Error('no answer'))
    const { app, work } = await queueing({ onError, admission: { toAnswer } })
    work(() => 'once')
    const answer = await app.ask('/reports', post({ headers: { prefer: 'wait=10' } }))
    expect(answer.status).toBe(500)
    expect(onError.mock.calls).toEqual([[expect.objectContaining({ message: 'no answer' })]])
  })

  it('has the result itself stand in for an answer that is none, and says so', async () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    const toAnswer = () => ({ status: 302 })
    const { app, work } = await queueing({ admission: { toAnswer } })
    work(() => 'once')
    const answer = await app.ask('/reports', post({ headers: { prefer: 'wait=10' } }))
    expect(answer.status).toBe(200)
    expect(JSON.parse(answer.body)).toMatchObject({ result: 'once' })
    expect(warn.mock.calls.length).toBeLessThanOrEqual(1)
  })

  describe.each(['overflow', 'preferred'] as const)('where not all is queued: %s', (admit) => {
    const ahead = admit === 'overflow' ? ['"0"'] : []
    const headers = admit === 'preferred' ? { prefer: 'respond-async' } : {}

    /** An application that has queued the request with the key "1", and has room for others again. */
    async function queued(setup: QueueingSetup = {}) {
      const limits = { limit: ahead.length || 10, window: '1m' } as const
      const subject = await queueing({ limits, ...setup, admission: { admit, ...setup.admission } })
      for (const key of ahead) await subject.app.ask('/reports', keyed(key))
      const first = await subject.app.ask('/reports', keyed('"1"', { headers }))
      expect(first.status).toBe(202)
      vi.setSystemTime(Date.now() + 60_000)
      subject.reached.mockClear()
      return { ...subject, id: idOf(first) }
    }

    it('answers from the job who sends its request again, though the limits have room', async () => {
      const { app, id, reached } = await queued()
      const again = await app.ask('/reports', keyed('"1"'))
      expect(again.status).toBe(202)
      expect(idOf(again)).toBe(id)
      expect(again.field('ratelimit')).toMatch(admit === 'overflow' ? /;r=0;/ : /;r=9;/)
      expect(reached).not.toHaveBeenCalled()
    })

    it('answers with the outcome when the job has ended', async () => {
      const { app, id, reached, work } = await queued()
      work(() => 'once')
      await reaches(app, id, 'done')
      const replay = await app.ask('/reports', keyed('"1"'))
      expect(replay.status).toBe(200)
      expect(JSON.parse(replay.body)).toEqual({ id, status: 'done', result: 'once' })
      expect(reached).not.toHaveBeenCalled()
    })

    it('refuses the key for another request', async () => {
      const { app, reached } = await queued()
      const other = keyed('"1"', { body: '{"page":2}' })
      expect((await app.ask('/reports', other)).status).toBe(422)
      expect(reached).not.toHaveBeenCalled()
    })

    it('leaves other keys, and those of others, to the application', async () => {
      const { app, reached } = await queued({ limits: { limit: 1, window: '1m', key: apiKey() } })
      const bob = keyed('"1"', { headers: { 'x-api-key': 'bob' } })
      expect((await app.ask('/reports', bob)).status).toBe(200)
      expect((await app.ask('/reports', keyed('"2"'))).status).toBe(200)
      expect(reached).toHaveBeenCalledTimes(2)
    })

    it('is unavailable, rather than done twice, while nobody knows of the key', async () => {
      vi.spyOn(console, 'warn').mockReturnValue()
      const { app, broker, reached } = await queued()
      await broker.close()
      const unknown = await app.ask('/reports', keyed('"1"'))
      expect(unknown.status).toBe(503)
      expect(unknown.field('retry-after')).toBe('5')
      expect(reached).not.toHaveBeenCalled()
      // Neither is what has no key held up, nor is what failed charged.
      expect((await app.ask('/reports', post())).status).toBe(200)
    })

    it('asks nobody about a request without a key', async () => {
      const { app, broker } = await queueing({ admission: { admit } })
      const find = vi.spyOn(broker, 'find')
      expect((await app.ask('/reports', post())).status).toBe(200)
      expect(find).not.toHaveBeenCalled()
      expect((await app.ask('/reports', keyed('"1"'))).status).toBe(200)
      expect(find).toHaveBeenCalledTimes(1)
    })

    it('demands keys of all requests where one is required, and that they are keys', async () => {
      const idempotency = { required: true, strict: true }
      const { app, reached } = await queueing({ admission: { admit, idempotency } })
      expect((await app.ask('/reports', post())).status).toBe(400)
      expect((await app.ask('/reports', keyed('bare'))).status).toBe(400)
      expect((await app.ask('/reports', { headers: ada })).status).toBe(400)
      expect(reached).not.toHaveBeenCalled()
      expect((await app.ask('/reports', keyed('"1"'))).status).toBe(200)
    })
  })

  it('tells texts from bytes that are written alike', async () => {
    const { app } = await queueing()
    const text = { body: 'AAAA', headers: { 'content-type': 'text/plain' } }
    const bytes = {
      body: new Uint8Array(3),
      headers: { 'content-type': 'application/octet-stream' },
    }
    expect((await app.ask('/reports', keyed('"1"', text))).status).toBe(202)
    expect((await app.ask('/reports', keyed('"1"', bytes))).status).toBe(422)
  })
}
