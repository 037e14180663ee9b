import { expect, it, vi } from 'vitest'
import { until } from '../../support/until.ts'
import type { Behaviour } from '../adapter-conformance.ts'
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

  it('leaves to the framework what no job can carry', async () => {
    const onError = vi.fn()
    const { app } = await queueing({ onError, admission: { toJob: () => ({ at: 10n }) } })
    expect((await app.ask('/reports', post())).status).toBe(500)
    expect(onError.mock.calls[0]?.[0]).toMatchObject({ code: 'SLUICE_PAYLOAD_INVALID' })
  })
}
