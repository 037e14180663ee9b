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
    'A01: answers 202 with the status URL; bodies parsed: %s',
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

  it('A03: redirects to the result after a wait, and on a repeated request', async () => {
    const resultUrl = async ({ id }: { id: string }) => `https://example.com/results/${id}`
    const { app, send, work } = await queueing({ queue: { resultUrl } })
    work(() => null)
    const waited = await send(keyed('"1"', { headers: { prefer: 'wait=10' } }))
    const { id } = JSON.parse(waited.body)
    const again = await send(keyed('"1"'))
    for (const answer of [waited, again, await look(app, id)]) {
      expect(answer.status).toBe(303)
      expect(answer.field('location')).toBe(`https://example.com/results/${id}`)
      expect(JSON.parse(answer.body)).toEqual({ id, status: 'done' })
    }
  })

  it('holds requests within its bounds, and none whose client disconnected', async () => {
    const { send, work } = await queueing({
      limits: { limit: 1_000, window: '1m' },
      queue: { maxDepth: 1_000, maxDepthPerIdentity: 1_000 },
      admission: { maxHeld: 1, maxWait: '1s' },
    })
    work(({ payload }) =>
      JSON.stringify(payload).includes('"page":2') ? 'at once' : new Promise(() => undefined),
    )
    const soon = post({ body: '{"page":2}', headers: { prefer: 'wait=100' } })
    const never = post({ headers: { prefer: 'wait=100' } })
    const soonIs = (status: number) =>
      until(`the answer is ${status}`, async () => (await send(soon)).status === status)
    expect((await send(soon)).status).toBe(200)

    const leaving = new AbortController()
    const left = send({ ...never, signal: leaving.signal })
    left.catch(() => undefined)
    await soonIs(202)
    leaving.abort()
    await soonIs(200)

    const waits = send(never)
    await soonIs(202)
    vi.setSystemTime(Date.now() + 1_000)
    expect((await waits).status).toBe(202)
  })

  it('A06: queues nothing unless the request or the options ask for it', async () => {
    const { app, reached, send } = await queueing({ admission: { admit: 'preferred' } })
    expect((await send()).status).toBe(200)
    expect(reached).toHaveBeenCalledTimes(1)
    const asked = await send(post({ headers: { prefer: 'respond-async' } }))
    expect([asked.status, asked.field('preference-applied')]).toEqual([202, 'respond-async'])
    expect(await app.statuses(4, '/reports', post())).toEqual([200, 200, 200, 429])
  })

  it('adds Vary: Prefer to the response of a GET', async () => {
    const before = { vary: 'Origin' }
    const { send } = await queueing({ admission: { admit: 'preferred' }, before })
    const passed = await send({ headers: ada })
    expect([passed.status, passed.field('vary')]).toEqual([200, 'Origin, Prefer'])
    const queued = await send({ headers: { ...ada, prefer: 'respond-async' } })
    expect(queued.status).toBe(202)
    expect(queued.field('vary')).toBe(driver.refusesAlone ? 'Prefer' : 'Origin, Prefer')
  })

  it.each([false, true])(
    'refuses a body that is too large or nested too deeply; bodies parsed: %s',
    async (parsesBodies) => {
      const onError = vi.fn()
      const { sent } = await queueing({ parsesBodies, onError })
      const nested = (levels: number) =>
        post({ body: `${'['.repeat(levels)}${']'.repeat(levels)}` })
      expect(await sent(nested(30_000), nested(501), nested(500))).toEqual([400, 400, 202])

      const small = await queueing({ parsesBodies, onError, admission: { maxBodyBytes: 100 } })
      const body = `["${'x'.repeat(200)}"]`
      const chunked = { 'transfer-encoding': 'chunked' }
      const large = [post({ body }), post({ body, headers: chunked })]
      expect(await small.sent(...large, post())).toEqual([413, 413, 202])
      expect(onError).not.toHaveBeenCalled()
    },
  )

  it('carries strings and bytes, and refuses mislabelled bodies', async () => {
    const { sent, work } = await queueing()
    const bodies: unknown[] = []
    work(({ payload }) => void bodies.push(payload))
    const as = (type: string, body: string | Uint8Array) =>
      post({ body, headers: { 'content-type': type } })
    const bytes = as('application/octet-stream', new Uint8Array([0, 255]))
    const malformed = as('application/json', '{"page":')
    expect(await sent(as('text/plain', 'grüße'), bytes, malformed)).toEqual([202, 202, 400])
    await until('both have run', () => bodies.length === 2)
    expect(bodies).toMatchObject([{ body: 'grüße' }, { body: 'AP8=', encoding: 'base64' }])
    expect(await sent(post({ headers: { 'content-encoding': 'gzip' } }))).toEqual([415])
  })
}
