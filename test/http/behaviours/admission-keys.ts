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
  const first = keyed('"1"')
  const other = keyed('"1"', { body: '{"page":2}' })
  const waiting = { prefer: 'wait=10' }
  const ofBob = { headers: { 'x-api-key': 'bob' } }

  it.each([
    ['always', 202],
    ['overflow', 200],
    ['preferred', 200],
  ] as const)('I01: demands keys where they are required; admit: %s', async (admit, status) => {
    const idempotency = { required: true, strict: true }
    const { send, sent, reached } = await queueing({ admission: { admit, idempotency } })
    expect((await send()).field('content-type')).toBe('application/problem+json')
    expect(await sent(post(), keyed('bare'), { headers: ada })).toEqual([400, 400, 400])
    expect(reached).not.toHaveBeenCalled()
    expect(await sent(first)).toEqual([status])
  })

  it('I02: same key while the first runs: 409 with conflict', async () => {
    const { send, sent } = await queueing({
      limits: { limit: 2, window: '1m' },
      admission: { idempotency: { whileRunning: 'conflict' } },
    })
    await send(first)
    const conflict = await send(first)
    expect([conflict.status, conflict.field('retry-after')]).toEqual([409, '1'])
    // To ask again is charged.
    expect(await sent(first)).toEqual([429])
  })

  it('I03: same key, other payload: 422', async () => {
    const { app, sent } = await queueing()
    expect(await sent(first, other)).toEqual([202, 422])
    expect((await app.ask('/reports?page=2', first)).status).toBe(422)
    expect(await sent(keyed('"1"', { body: '{"page":2}', ...ofBob }))).toEqual([202])
  })

  it('I05: a key that was refused by a limit is as new', async () => {
    const { sent, queue } = await queueing({ limits: { limit: 1, window: '1m' } })
    expect(await sent(post(), first)).toEqual([202, 429])
    vi.setSystemTime(Date.now() + 60_000)
    expect(await sent(first)).toEqual([202])
    expect((await queue.depth()).depth).toBe(2)
  })

  /** An application that has queued the request with the key "1", and has no room for others. */
  async function full(admit: 'always' | 'overflow' | 'preferred', own?: Limits) {
    const policies = [
      { name: 'soft', limit: 1, window: '1m' },
      { name: 'hard', limit: 2, window: '1m' },
    ] as const
    const admission = { admit, ...(admit === 'overflow' ? { soft: ['soft'] } : {}) }
    const subject = await queueing({ limits: { policies, ...own }, admission })
    const ahead = admit === 'overflow' ? ['"0"'] : []
    for (const key of [...ahead, '"1"']) {
      await subject.send(keyed(key, { headers: { prefer: 'respond-async' } }))
    }
    const known = await subject.send(first)
    expect(known.status).toBe(202)
    subject.reached.mockClear()
    return { ...subject, known, id: idOf(known) }
  }

  describe.each(['always', 'overflow', 'preferred'] as const)('over a limit: %s', (admit) => {
    it('I02, I04: answers a repeated request from its job', async () => {
      const { app, id, known, reached, send, work } = await full(admit)
      expect(known.field('ratelimit')).toContain(';r=0;')
      const again = await send(first)
      expect([again.status, idOf(again)]).toEqual([202, id])
      work(() => 'once')
      await reaches(app, id, 'done')
      const ended = await send(first)
      expect(ended.status).toBe(200)
      expect(JSON.parse(ended.body)).toEqual({ id, status: 'done', result: 'once' })
      expect(reached).not.toHaveBeenCalled()
    })

    it('refuses the key for another request, of another client, and other keys', async () => {
      const { queue, send, sent } = await full(admit)
      if (admit === 'overflow') await send(keyed('"2"'))
      const { depth } = await queue.depth()
      const refused = [other, keyed('"1"', ofBob), keyed('"3"'), keyed('"open')]
      expect(await sent(...refused)).toEqual([429, 429, 429, 429])
      expect((await queue.depth()).depth).toBe(depth)
    })

    it('bounds job look-ups per client', async () => {
      const { app, broker } = await full(admit)
      vi.setSystemTime(Date.now() + 1_000)
      const find = vi.spyOn(broker, 'find')
      const statuses = await app.statuses(25, '/reports', first)
      expect(statuses).toEqual([...Array(20).fill(202), ...Array(5).fill(429)])
      expect(find).toHaveBeenCalledTimes(20)
    })

    it("refuses while the key's state is unknown", async () => {
      vi.spyOn(console, 'warn').mockReturnValue()
      const { sent, broker } = await full(admit)
      await broker.close()
      expect(await sent(first)).toEqual([429])
    })

    it('counts neither denial nor strike, unlike invalid requests, and refuses blocked clients', async () => {
      const onDecision = vi.fn()
      const penalty = { after: 2, within: '1h', for: '1h' } as const
      const { send, sent } = await full(admit, { penalty, observers: { onDecision } })
      expect(await sent(first, first, first)).toEqual([202, 202, 202])
      expect(onDecision.mock.calls.map(([{ decision }]) => decision.allowed)).not.toContain(false)
      const malformed = keyed('"9"', { body: '{"page":' })
      expect(await sent(malformed, other)).toEqual([429, 429])
      const blocked = await send(first)
      expect(JSON.parse(blocked.body)).toMatchObject({ title: 'Abnormal Usage Detected' })
    })
  })

  it('I04: the stored response, if the application provides one', async () => {
    const { send, work } = await queueing({
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
    const answers = [await send(keyed('"1"', { headers: waiting })), await send(first)]
    for (const [index, answer] of answers.entries()) {
      expect([answer.status, answer.body]).toEqual([201, '{"pages":3}'])
      expect(answer.field('location')).toMatch(/^\/reports\/.{36}$/)
      expect(answer.field('cache-control')).toBe('no-store')
      expect(answer.field('ratelimit')).toContain(`;r=${4 - index};`)
    }
    expect(ran).toHaveBeenCalledTimes(1)
  })

  it('passes rejections of the response function to the error handler', async () => {
    const onError = vi.fn()
    const toAnswer = () => Promise.reject(new Error('no answer'))
    const { sent, work } = await queueing({ onError, admission: { toAnswer } })
    work(() => 'once')
    expect(await sent(post({ headers: waiting }))).toEqual([500])
    expect(onError.mock.calls).toEqual([[expect.objectContaining({ message: 'no answer' })]])
  })

  it('uses the result instead of an invalid response, and reports it', async () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    const { send, work } = await queueing({ admission: { toAnswer: () => ({ status: 302 }) } })
    work(() => 'once')
    const answer = await send(post({ headers: waiting }))
    expect(answer.status).toBe(200)
    expect(JSON.parse(answer.body)).toMatchObject({ result: 'once' })
    expect(warn.mock.calls.length).toBeLessThanOrEqual(1)
  })

  describe.each(['overflow', 'preferred'] as const)('where not all is queued: %s', (admit) => {
    /** The same application when the limits have room again. */
    async function later(own?: Limits) {
      const subject = await full(admit, own)
      vi.setSystemTime(Date.now() + 60_000)
      return subject
    }

    it('answers a repeated request from its job, although the limits have room', async () => {
      const { app, id, reached, send, work } = await later()
      const again = await send(first)
      expect([again.status, idOf(again)]).toEqual([202, id])
      expect(again.field('ratelimit')).toMatch(/"soft";r=0;.*"hard";r=1;/)
      work(() => 'once')
      await reaches(app, id, 'done')
      vi.setSystemTime(Date.now() + 60_000)
      const replay = await send(first)
      expect(replay.status).toBe(200)
      expect(JSON.parse(replay.body)).toEqual({ id, status: 'done', result: 'once' })
      expect(reached).not.toHaveBeenCalled()
    })

    it('refuses the key for another request, and leaves those of others to the application', async () => {
      const { sent, reached } = await later({ key: apiKey() })
      expect(await sent(other)).toEqual([422])
      expect(reached).not.toHaveBeenCalled()
      vi.setSystemTime(Date.now() + 60_000)
      expect(await sent(keyed('"1"', ofBob), keyed('"2"'))).toEqual([200, 200])
      expect(reached).toHaveBeenCalledTimes(2)
    })

    it("answers 503 rather than run twice while the key's state is unknown", async () => {
      vi.spyOn(console, 'warn').mockReturnValue()
      const { broker, reached, send, sent } = await later()
      await broker.close()
      const unknown = await send(first)
      expect([unknown.status, unknown.field('retry-after')]).toEqual([503, '5'])
      expect(reached).not.toHaveBeenCalled()
      // Neither is what has no key held up, nor is what failed charged.
      expect(await sent(post())).toEqual([200])
    })

    it('looks up nothing for a request without a key', async () => {
      const { broker, sent } = await queueing({ admission: { admit } })
      const find = vi.spyOn(broker, 'find')
      expect(await sent(post())).toEqual([200])
      expect(find).not.toHaveBeenCalled()
      expect(await sent(first)).toEqual([200])
      expect(find).toHaveBeenCalledTimes(1)
    })
  })

  it('distinguishes strings from bytes that look alike', async () => {
    const { sent } = await queueing()
    const text = { body: 'AAAA', headers: { 'content-type': 'text/plain' } }
    const type = 'application/octet-stream'
    const bytes = { body: new Uint8Array(3), headers: { 'content-type': type } }
    expect(await sent(keyed('"1"', text), keyed('"1"', bytes))).toEqual([202, 422])
  })
}
