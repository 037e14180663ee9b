import { createLimiter, type StoreErrorEvent } from '@sluice/core'
import { type CommandClient, type RedisStoreOptions, redisStore } from '@sluice/redis'
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { patientLimiter } from '../support/patient-limiter.ts'
import { redisHttpFront } from '../support/redis-http-front.ts'
import { redisOfFile } from '../support/redis-test.ts'
import { until } from '../support/until.ts'
import { redisByHttp } from './redis-by-http.ts'

const { redis, client: sockets } = await redisOfFile()
const front = await redisHttpFront(redis.url)
let count = 0

afterAll(() => front[Symbol.asyncDispose]())

const byHttp = (): CommandClient => redisByHttp(front.url, front.token)

/** A store with keys of its own, until the end of the test. */
function storeOf(client: CommandClient = byHttp(), options: RedisStoreOptions = {}) {
  count += 1
  const store = redisStore(client, { prefix: `http${count}`, heartbeatMs: 0, ...options })
  onTestFinished(() => store.close())
  return store
}

describe('a store over commands that travel by HTTP', () => {
  it('counts together with processes that have sockets', async () => {
    const options = { prefix: 'both', secret: 'a secret', heartbeatMs: 0, denialTtlMs: 0 }
    const rate = { name: 'shared', limit: 3, window: '1m' } as const
    const here = patientLimiter({ store: storeOf(byHttp(), options), ...rate })
    const there = patientLimiter({ store: redisStore(sockets, options), ...rate })
    // The secret and the key are no ASCII, and the key has a lone surrogate.
    const key = 'Zoë \ud800'
    const allowed = [await here.consume(key), await there.consume(key), await here.consume(key)]
    expect(allowed.map((decision) => decision.allowed)).toEqual([true, true, true])
    expect(await here.consume(key)).toMatchObject({ allowed: false, source: 'store' })
    expect(await there.consume(key)).toMatchObject({ allowed: false })
  })

  it('keeps documents and reports with any text, and knows the processes of the fleet', async () => {
    const store = storeOf(byHttp(), { heartbeatMs: 1_000 })
    const text = 'Zoë 🎉 "\u0000"\n'
    const change = { revision: 0, text, record: text, maxKept: 10 }
    expect(await store.documents?.write('rules', change)).toBe(true)
    expect(await store.documents?.read('rules')).toEqual({ revision: 1, text })
    expect(await store.documents?.log('rules')).toEqual([text])
    await store.apply('peek', [])
    await until('it is counted', async () => {
      const members = await redis.cli('KEYS', `http${count}:*:instances`)
      return Array.isArray(members) && members.length === 1
    })
    expect(store.fleet?.instances).toBe(1)
  })
})

describe('a Redis behind HTTP that fails', () => {
  async function failure(client: CommandClient = byHttp()): Promise<StoreErrorEvent['error']> {
    const told: StoreErrorEvent[] = []
    const limiter = createLimiter({
      ...{ store: storeOf(client), limit: 5, window: '1m', deadlineMs: 20_000 },
      failureMode: 'closed',
      observers: { onStoreError: (event) => told.push(event) },
    })
    expect(await limiter.consume('a')).toMatchObject({ allowed: false, source: 'closed' })
    const [event] = told
    if (!event) throw new Error('nobody was told')
    return event.error
  }

  it('is told by its reply', async () => {
    front.answer = async () => [400, { error: 'READONLY You can’t write against a replica.' }]
    onTestFinished(() => {
      front.answer = undefined
    })
    expect(await failure()).toMatchObject({ code: 'SLUICE_REDIS_READONLY' })
  })

  it('is told by a token that is wrong', async () => {
    expect(await failure(redisByHttp(front.url, 'wrong'))).toMatchObject({
      code: 'SLUICE_REDIS_AUTH',
    })
  })

  it('is told when nobody listens, with the reason that fetch hides', async () => {
    const error = await failure(redisByHttp(`http://127.0.0.1:${await freePort()}/`, ''))
    expect(error.code).toBe('SLUICE_REDIS_CONNECTION')
    expect(error.message).toMatch(/fetch failed \(.*ECONNREFUSED/)
  })

  it.each([
    ['the body of a response', { result: 'OK' }],
    ['nothing', undefined],
    ['a flag', true],
    ['an observable, such as that of a ClientProxy of Nest', { subscribe: String }],
  ])('is told by a send() that resolves to %s', async (_what, reply) => {
    const error = await failure({ send: async () => reply })
    expect(error).toMatchObject({
      code: 'SLUICE_STORE_REPLY',
      message: expect.stringMatching(
        /^the client's send\(\) must resolve to the reply itself.*; any object with a send\(\) method/,
      ),
    })
  })

  it.each([
    ['a list of another call', ['x', 1, 2]],
    ['a text', 'OK'],
    ['null', null],
    ['a list with a fraction', [0.5, 1]],
  ])('is told by a reply that is %s', async (_what, reply) => {
    expect(await failure({ send: async () => reply })).toMatchObject({ code: 'SLUICE_STORE_REPLY' })
  })

  it('is told what was thrown, whatever it is', async () => {
    const send = ([name]: string[]) => Promise.reject(name === 'eval' ? 'LOADING' : 'NOSCRIPT')
    expect(await failure({ send })).toMatchObject({ code: 'SLUICE_REDIS_BUSY' })
  })

  it('ends a command after five seconds by its signal, and does not send it again', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const signals: AbortSignal[] = []
    const client: CommandClient = {
      send(_command, { signal }) {
        signals.push(signal)
        return new Promise(() => undefined)
      },
    }
    const failing = failure(client)
    await vi.advanceTimersByTimeAsync(4_999)
    expect(signals.map(({ aborted }) => aborted)).toEqual([false])
    await vi.advanceTimersByTimeAsync(1)
    expect(signals.map(({ aborted }) => aborted)).toEqual([true])
    expect(await failing).toMatchObject({
      code: 'SLUICE_REDIS_CONNECTION',
      message: expect.stringMatching(/timed out after 5000 ms/),
    })
  })
})
