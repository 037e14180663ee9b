import { createServer, get, type IncomingMessage } from 'node:http'
import { mock } from 'node:test'
import { createLimiter } from '@sluice/core'
import { rateLimit } from '@sluice/express'
import { rateLimitPlugin } from '@sluice/fastify'
import { expectLimited, expectNotLimited, fakeClock, testStore } from '@sluice/testing'
import express from 'express'
import fastify from 'fastify'
import request from 'supertest'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { portOf } from '../adapters/drivers/driver.ts'

const one = { name: 'burst', limit: 1, window: '30s' } as const

const expressApp = () =>
  express()
    .use(rateLimit(one))
    .get('/', (_request, response) => void response.send('hello'))

/** Ways to ask an application, each with the response of another library. */
const ways: Readonly<Record<string, () => Promise<() => Promise<unknown>>>> = {
  async fetch() {
    const port = await portOf(expressApp().listen(0, '127.0.0.1'))
    return () => fetch(`http://127.0.0.1:${port}`)
  },
  async supertest() {
    const app = expressApp()
    return () => request(app).get('/')
  },
  async 'light-my-request'() {
    const app = fastify()
    onTestFinished(() => app.close())
    await app.register(rateLimitPlugin, one)
    app.get('/', async () => 'hello')
    return () => app.inject('/')
  },
  async 'node:http'() {
    const port = await portOf(createServer(expressApp()).listen(0, '127.0.0.1'))
    return () =>
      new Promise<IncomingMessage>((resolve, reject) => {
        get({ host: '127.0.0.1', port, agent: false }, (response) => {
          response.resume()
          resolve(response)
        }).once('error', reject)
      })
  },
}

describe('a response of', () => {
  it.each(Object.entries(ways))('%s is read', async (_, open) => {
    const ask = await open()
    const first = await expectNotLimited(await ask(), { policy: 'burst', remaining: 0 })
    expect(first.policies).toMatchObject([{ name: 'burst', limit: 1 }])
    const second = await ask()
    const { retryAfterMs } = await expectLimited(second, { policy: 'burst', retryAfter: 30 })
    expect(retryAfterMs).toBe(30_000)
    await expect(expectNotLimited(second)).rejects.toThrow('status is 429: the request was refused')
  })

  it('fetch can still be read afterwards', async () => {
    const response = new Response('hello')
    await expectNotLimited(response)
    expect(await response.text()).toBe('hello')
    await expect(expectLimited(response)).rejects.toThrow('a body that was read before')
  })
})

const problem = (fields: object) => JSON.stringify({ status: 429, ...fields })
const refusal = {
  status: 429,
  headers: {
    'Content-Type': 'application/problem+json',
    RateLimit: '"burst";r=0;t=10',
    'RateLimit-Policy': '"burst";q=5;w=10',
    'X-RateLimit-Remaining': '0',
    'Retry-After': '10',
  },
  text: problem({ 'violated-policies': ['burst'] }),
}
const withHeaders = (headers: object) => ({
  ...refusal,
  headers: { ...refusal.headers, ...headers },
})

describe('expectLimited says that', () => {
  it.each<[object, object, string]>([
    [{ ...refusal, status: 200 }, {}, 'status is 200, not 429: the request was admitted'],
    [{ ...refusal, status: 503 }, {}, "failureMode 'closed', 503 means that the store failed"],
    [{ ...refusal, status: 404 }, { status: 420 }, '- status is 404, not 420\n'],
    [withHeaders({ 'Retry-After': undefined }), {}, 'Retry-After is missing'],
    [withHeaders({ 'Retry-After': '1.5' }), {}, "Retry-After is '1.5', not a whole number"],
    [withHeaders({ 'Retry-After': ['10', '20'] }), {}, "Retry-After is '10, 20', not a whole"],
    [refusal, { retryAfter: 9 }, 'Retry-After is 10 s, not 9 s'],
    [refusal, { retryAfter: 'none' }, 'Retry-After is 10, not absent'],
    [withHeaders({ RateLimit: '??' }), {}, "RateLimit cannot be read: '??'"],
    [withHeaders({ 'X-RateLimit-Remaining': '3' }), {}, "X-RateLimit-Remaining is '3', not 0"],
    [withHeaders({ RateLimit: '"burst";r=0;t=60' }), {}, "'burst' resets in 60 s, after the 10 s"],
    [refusal, { policy: 'day' }, "'burst' denied the request, not 'day'"],
    [{ ...refusal, text: '{}' }, { policy: 'day' }, "the headers name 'burst', not 'day'"],
    [{ ...refusal, text: 'x' }, {}, 'the body is not a JSON object'],
    [{ ...refusal, text: '{"status":503}' }, {}, 'the body says status 503, but the status is 429'],
  ])('%#: %j', async (response, expectations, message) => {
    await expect(expectLimited(response, expectations)).rejects.toThrow(message)
  })

  it('all that is wrong, with the response', async () => {
    const response = { statusCode: 200, headers: { ratelimit: '"burst";r=4;t=10' }, payload: 'hi' }
    await expect(expectLimited(response, { policy: 'burst' })).rejects.toThrow(
      [
        'expected a refusal by a rate limit, but:',
        '- status is 200, not 429: the request was admitted',
        '- Retry-After is missing, so the client cannot know its wait',
        "- 'burst' has 4 units left, so it cannot have denied",
        `The response has status 200; ratelimit: "burst";r=4;t=10; body 'hi'`,
      ].join('\n'),
    )
  })

  it.each([
    [undefined, 'undefined'],
    [Promise.resolve(refusal), 'a Promise'],
    [{ status: '429', headers: {} }, 'an object'],
  ])('it was given no response: %s', async (response, shown) => {
    await expect(expectLimited(response)).rejects.toThrow(
      `the argument of expectLimited must be a response with status or statusCode, and headers; await it first, but is ${shown}`,
    )
  })

  it('an expectation has another name', async () => {
    const misspelt = { polcy: 'burst' } as never
    await expect(expectLimited(refusal, misspelt)).rejects.toThrow(/there is no option 'polcy'/)
    await expect(expectNotLimited(refusal, misspelt)).rejects.toThrow(/there is no option 'polcy'/)
  })
})

it.each<[string, object, object]>([
  ['a whole refusal', refusal, { policy: 'burst', retryAfter: 10 }],
  ['a refusal of axios', { ...refusal, text: undefined, data: JSON.parse(refusal.text) }, {}],
  ['its own message', { status: 429, text: 'slow', headers: { 'retry-after': 3 } }, {}],
  ['limit 0', { status: 429, headers: {} }, { retryAfter: 'none' }],
])('expectLimited takes %s', async (_, response, expectations) => {
  await expectLimited(response, expectations)
})

it.each<[object, object, string]>([
  [refusal, {}, "the body says that 'burst' denied the request"],
  [withHeaders({}), { policy: 'day' }, "the headers name 'burst', not 'day'"],
  [withHeaders({}), { remaining: 4 }, "'burst' has 0 units left, not 4"],
  [{ status: 200, headers: {} }, { remaining: 4 }, 'do not say how many units are left'],
  [{ status: 200, headers: {} }, { policy: 'x' }, "name no policy, not 'x'"],
])('expectNotLimited says what is wrong: %#: %j', async (response, expectations, message) => {
  await expect(expectNotLimited(response, expectations)).rejects.toThrow(message)
})

describe('fakeClock', () => {
  it('moves limits in memory, and restores the time', async () => {
    const { now } = Date
    const clock = fakeClock({ now: 1_795_195_800_000 })
    const limiter = createLimiter(one)
    await limiter.consume('ada')
    clock.advance(29_999)
    expect((await limiter.consume('ada')).retryAfterMs).toBe(1)
    clock.advance('1ms')
    expect((await limiter.consume('ada')).allowed).toBe(true)
    expect([Date.now(), clock()]).toEqual([1_795_195_830_000, 1_795_195_830_000])
    clock.set(5)
    expect(Date.now()).toBe(5)
    clock.restore()
    expect(Date.now).toBe(now)
    expect(clock()).toBeGreaterThan(1_795_195_830)
  })

  it('begins at the time of the machine, may lie over another one, and is restored in any order', () => {
    const before = Date.now()
    const [first, second] = [fakeClock(), fakeClock({ now: 2 })]
    expect(first() - before).toBeLessThan(60_000)
    first.restore()
    expect(Date.now()).toBe(2)
    second.restore()
    expect(Date.now()).toBeGreaterThan(1_000_000)
  })

  it('throws if a move would have no effect', () => {
    const lower = fakeClock({ now: 1 })
    const upper = fakeClock()
    expect(() => lower.advance(1)).toThrow(
      /advance would have no effect on limits, because another clock/,
    )
    upper.restore()
    lower.advance(1)
    expect(Date.now()).toBe(2)
    lower.restore()
    expect(() => lower.set(3)).toThrow(/set came after restore\(\).*create a new clock/)
  })

  it.each<[string, () => void]>([
    ['fake timers', () => vi.useFakeTimers({ toFake: ['Date'] })],
    ['a time of vitest alone', () => vi.setSystemTime(5)],
    ['a spy', () => vi.spyOn(Date, 'now').mockReturnValue(5)],
    ["a clock of node's", () => mock.timers.enable({ apis: ['Date'] })],
  ])('rejects a combination with %s, in either order', (_, fake) => {
    const end = () => {
      vi.useRealTimers()
      vi.restoreAllMocks()
      mock.timers.reset()
    }
    onTestFinished(end)
    const clock = fakeClock({ now: 1 })
    onTestFinished(() => clock.restore())
    fake()
    expect(() => clock.advance('1m')).toThrow(/exclude Date from your fake timers/)
    end()
    clock.restore()
    expect(Date.now()).toBeGreaterThan(1_000_000)

    fake()
    expect(() => fakeClock()).toThrow(/fake timers or a mock have replaced Date\.now/)
    end()
  })

  it('works with fake timers that leave Date alone', () => {
    vi.useFakeTimers({ toFake: ['setTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const clock = fakeClock({ now: 1 })
    clock.advance('1s')
    expect(Date.now()).toBe(1_001)
    clock.restore()
  })

  it('refuses other times', () => {
    const clock = fakeClock()
    onTestFinished(() => clock.restore())
    expect(() => clock.advance('1 minute' as never)).toThrow(/advance must be whole milliseconds/)
    expect(() => clock.set(-1)).toThrow('now must be whole milliseconds since 1970, but is -1')
    expect(() => fakeClock({ now: Number.NaN })).toThrow(/but is NaN/)
    expect(() => fakeClock({ time: 1 } as never)).toThrow(/there is no option 'time'/)
  })
})

describe('testStore', () => {
  it('counts, until its limits are off, or deny', async () => {
    const store = testStore()
    const app = express()
      .use(rateLimit({ ...one, store, penalty: { after: 2, within: '1m', for: '10m' } }))
      .get('/', (_request, response) => void response.send('hello'))
    const ask = () => request(app).get('/')
    await expectNotLimited(await ask(), { remaining: 0 })
    await expectLimited(await ask())
    store.admitAll()
    for (let i = 0; i < 5; i += 1) await expectNotLimited(await ask(), { remaining: 1 })
    store.denyAll({ retryAfter: '90s' })
    for (let i = 0; i < 5; i += 1) {
      await expectLimited(await ask(), { retryAfter: 90, policy: 'burst' })
    }
    store.count()
    await expectNotLimited(await ask(), { remaining: 0 })
    await expectLimited(await ask())
    store.denyAll()
    await expectLimited(await ask(), { retryAfter: 60 })
  })

  it('serves a limiter with leases and queues, and its other methods', async () => {
    const store = testStore()
    const leases = createLimiter({ name: 'leases', algorithm: 'concurrency', limit: 1, store })
    const queue = createLimiter({ ...one, algorithm: 'leaky-bucket', store })
    store.admitAll()
    for (const limiter of [leases, queue, leases, queue]) {
      const decision = await limiter.consume('ada')
      expect(decision).toMatchObject({ allowed: true, delayMs: 0, source: 'store' })
      await limiter.release(decision)
      await limiter.refund(decision)
    }
    store.denyAll()
    for (const limiter of [leases, queue]) {
      expect(await limiter.peek('ada')).toMatchObject({ allowed: false, retryAfterMs: 60_000 })
      expect(await limiter.consume('ada', { cost: 0 })).toMatchObject({ allowed: true })
      expect(await limiter.charge('ada')).toMatchObject({ allowed: true })
      await limiter.reset('ada')
    }
  })

  it('refuses a wait that is none', () => {
    const store = testStore()
    expect(() => store.denyAll({ retryAfter: '-1s' as never })).toThrow(/retryAfter must be/)
    expect(() => store.denyAll({ for: '1s' } as never)).toThrow(/there is no option 'for'/)
  })
})
