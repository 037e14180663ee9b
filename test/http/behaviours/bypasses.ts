import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import {
  createLimiter,
  type Decision,
  type DecisionEvent,
  type LimiterOptions,
  memoryStore,
  type Store,
} from '@sluice/core'
import { apiKey, ipKey, route } from '@sluice/http'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { parseList } from 'structured-headers'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { App, Behaviour } from '../../adapters/adapter-conformance.ts'
import { limitFields, type Question } from '../../adapters/ask.ts'
import type { Limits, NativeRequest } from '../../adapters/drivers/driver.ts'
import { sendPipelined, sendRaw } from '../../adapters/send-raw.ts'
import { type RedisServer, startRedis } from '../../support/redis-server.ts'
import { scaled } from '../../support/scale.ts'
import { until } from '../../support/until.ts'

/*
 * How rate limiters are bypassed: a block for each way, in which it is tried over HTTP. Some ways have more tests than these:
 *   route aliases: route-aliases.test.ts, with every setting of the routers
 *   200 streams at once on HTTP/2: fastify.test.ts (Express 4 and 5 do not speak it)
 *   addresses and keys: test/http/keys.test.ts, id-keys.test.ts · stores: test/stores, test/redis, test/faults
 */

const two = { limit: 2, window: '1m' } as const
const proxied = { limits: [two], trustProxy: '127.0.0.1' }
const carrying = (headers: Record<string, string>): Question => ({ headers })
const _forwardedFor = (list: string) => carrying({ 'x-forwarded-for': list })
const byUser = (request: NativeRequest) => request.headers['x-user'] as string | undefined
const as = (user: string) => carrying({ 'x-user': user })

async function passed(app: App, questions: readonly Question[], path = '/'): Promise<number> {
  let count = 0
  for (const question of questions) {
    if ((await app.ask(path, question)).status === 200) count += 1
  }
  return count
}

export const bypasses: Behaviour = ({ driver, start, limited }) => {
  let server: RedisServer
  let redis: Redis

  beforeAll(async () => {
    server = await startRedis()
    redis = new Redis(server.url)
  })
  afterAll(async () => {
    redis.disconnect()
    await server.stop()
  })
  beforeEach(() => vi.spyOn(console, 'warn').mockReturnValue())

  /** On a busy machine too Redis is to decide, and nobody else. */
  const inRedis = () => ({ store: redisStore(redis, { heartbeatMs: 0 }), deadlineMs: 10_000 })

  describe('spoofed addresses', () => {
    const fields = [
      'x-forwarded-for',
      'forwarded',
      'x-real-ip',
      'cf-connecting-ip',
      'true-client-ip',
      'x-client-ip',
    ]
    const spoofed = Array.from({ length: 30 }, (_, i) => {
      const value = `198.51.100.${i}`
      return carrying({ [fields[i % 6] ?? '']: i % 6 === 1 ? `for=${value}` : value })
    })

    it('open no second bucket where no proxy is trusted', async () => {
      expect(await passed(await limited(two), spoofed)).toBe(2)
    })

    it('open none left of what a trusted proxy has added, nor in any other field', async () => {
      const through = spoofed.map(({ headers = {} }, i) =>
        carrying({ ...headers, 'x-forwarded-for': `198.51.100.${i}, 10.${i}.0.1, 203.0.113.9` }),
      )
      expect(await passed(await start(proxied), through)).toBe(2)
    })
  })

  describe('keys with delimiters in them', () => {
    it('never reach the keys of another kind, nor of another policy', async () => {
      const policies = [
        { name: 'a', limit: 1, window: '1m', key: apiKey() },
        { name: 'a-b', limit: 1, window: '1m', key: byUser },
      ] as const
      const app = await limited({ policies, onMissingKey: 'skip' })
      const questions = ['@key/k', 'a:@key/k', 'b:k', 'k', '127.0.0.1'].map(as)
      expect(await passed(app, [carrying({ 'x-api-key': 'k' }), ...questions])).toBe(6)
    })
  })

  describe('aliases of a route', () => {
    it('share the one counter of its rule', async () => {
      let reached = 0
      const limits = [{ routes: { 'POST /login': { limit: 3, window: '1m' } } }] as const
      const login = { method: 'POST', path: '/login', reached: () => (reached += 1) } as const
      const { port } = await start({ limits, routes: [login] })
      const aliases = [
        '/LOGIN',
        '/login/',
        '//login',
        '/%6cogin',
        '/./login',
        '/login?x',
        '/login#x',
        'http://h/login',
      ]
      await sendRaw(port, 'POST', ['/login', ...aliases, ...aliases, '/login', '/login', '/login'])

      expect(reached).toBeLessThanOrEqual(3)
      expect(reached).toBeGreaterThan(0)
    })
  })

  const ids = scaled(1_000, 10_000)
  describe(`${ids} ids in a path`, () => {
    it.each(['with a rule for the route', 'before the route is known'])(
      'are one key %s',
      async (how) => {
        const store = memoryStore()
        const apply = vi.spyOn(store, 'apply')
        let reached = 0
        const counted = { limit: 5, window: '1m', key: route(), store } as const
        const rule = {
          ...counted,
          routes: { 'GET /users/:id': { limit: 5, window: '1m' } },
        } as const
        const limits = [how.startsWith('with') ? rule : counted]
        const { port } = await start({
          limits,
          routes: [{ path: '/users/:id', reached: () => (reached += 1) }],
        })
        await sendPipelined(
          port,
          Array.from({ length: ids }, (_, i) => `/users/${i}-${Math.random()}`),
        )

        expect(apply).toHaveBeenCalledTimes(ids)
        expect(new Set(apply.mock.calls.map(([, checks]) => checks[0]?.key)).size).toBe(1)
        expect(reached).toBe(5)
      },
    )
  })

  describe('HEAD and OPTIONS', () => {
    it('HEAD and GET together never exceed the limit of a rule', async () => {
      const limits = [{ routes: { 'GET /x': { limit: 3, window: '1m' } } }] as const
      const app = await start({ limits, routes: [{ path: '/x' }] })
      const questions = Array.from({ length: 10 }, (_, i) => ({ method: i % 2 ? 'GET' : 'HEAD' }))
      expect(await passed(app, questions, '/x')).toBe(3)
    })

    it("OPTIONS goes free as a preflight only, with preflights: 'pass'", async () => {
      const app = await limited({ limit: 1, window: '1m', preflights: 'pass' })
      await app.ask()
      const origin = 'https://a.example'
      const asks = { 'access-control-request-method': 'POST' }
      const status = async (headers: Record<string, string>) =>
        (await app.ask('/', { method: 'OPTIONS', headers })).status

      expect(await status({ origin, ...asks })).not.toBe(429)
      for (const headers of [{}, { origin }, asks])
        expect(await status(headers as typeof asks)).toBe(429)
    })
  })

  describe('a flood of keys', () => {
    it('does not evict what is exhausted, nor grow beyond the cap', async () => {
      const store = memoryStore({ maxKeys: 100 })
      const app = await limited({ limit: 1, window: '1h', key: byUser, store })
      expect(await app.statuses(2, '/', as('blocked'))).toEqual([200, 429])
      await Promise.all(
        Array.from({ length: scaled(300, 1_000) }, (_, i) => app.ask('/', as(`user-${i}`))),
      )

      expect(store.size).toBeLessThanOrEqual(100 + 64)
      expect(await app.statuses(1, '/', as('blocked'))).toEqual([429])
    })
  })

  describe('enormous and secret keys', () => {
    it('become keys of one length in Redis, which tell nothing', async () => {
      await redis.flushall()
      const secret = 'sk_live_51HxQ'
      const key = (request: NativeRequest) => {
        const user = byUser(request)
        return user === 'huge' ? secret.repeat(80_000) : user
      }
      const app = await limited({ name: 'api', limit: 1, window: '1m', key, ...inRedis() })
      for (const user of ['a', secret, 'huge']) {
        expect(await app.statuses(2, '/', as(user))).toEqual([200, 429])
      }

      const keys = await redis.keys('*')
      expect(keys).toHaveLength(3)
      // The hash tag is one of 64, of three or four letters.
      expect(new Set(keys.map((name) => name.replace(/\{\w+\}/, '{}').length)).size).toBe(1)
      expect(keys.join()).not.toMatch(/sk_live|51HxQ/)
    })
  })

  describe('a burst on one key', () => {
    it.each<[string, () => LimiterOptions['store']]>([
      ['memory', () => memoryStore()],
      ['Redis', () => inRedis().store],
    ])('of 200 requests at once passes exactly to the limit, counted in %s', async (_, store) => {
      const policy = { name: 'burst', limit: 25, window: '1h', deadlineMs: 10_000 } as const
      const app = await limited({ ...policy, key: () => driver.name, store: store() as Store })
      const answers = await Promise.all(Array.from({ length: 200 }, () => app.ask()))

      expect(answers.filter(({ status }) => status === 200)).toHaveLength(25)
      expect(answers.filter(({ status }) => status === 429)).toHaveLength(175)
    })
  })

  describe('wrong logins', () => {
    it('100 at once: at most the limit reach the handler, though what succeeds is given back', async () => {
      const store = memoryStore()
      const limiter = createLimiter({ name: 'login', limit: 5, window: '1h', store })
      const decisions: Decision[] = []
      let reached = 0
      const app = await start({
        limits: [
          {
            ...{ name: 'login', limit: 5, window: '1h', store },
            observers: { onDecision: ({ decision }) => void decisions.push(decision) },
          },
        ],
        routes: [
          {
            method: 'POST',
            path: '/login',
            reached: () => (reached += 1),
            answer: { status: 401 },
          },
        ],
      })
      const question = { method: 'POST' }
      await app.ask('/login', question)
      await limiter.refund(decisions[0] as Decision)
      await Promise.all(Array.from({ length: 100 }, () => app.ask('/login', question)))

      expect(reached).toBe(1 + 5)
    })
  })

  describe('refunds', () => {
    it('give back once, and nothing after a reset', async () => {
      const policy = { name: 'api', limit: 3, window: '1h', store: memoryStore() } as const
      const limiter = createLimiter(policy)
      const decisions: Decision[] = []
      const onDecision = ({ decision }: DecisionEvent) => void decisions.push(decision)
      const app = await limited({ ...policy, observers: { onDecision } })
      await app.statuses(3)
      const [first, second] = decisions as [Decision, Decision]

      const refunded = await Promise.all([first, first, first].map((one) => limiter.refund(one)))
      expect(refunded).toEqual([true, false, false])
      expect(await app.statuses(2)).toEqual([200, 429])
      await limiter.reset(ipKey('127.0.0.1'))
      expect(await app.statuses(3)).toEqual([200, 200, 200])
      await limiter.refund(second)
      expect(await app.statuses(1)).toEqual([429])
    })
  })

  describe('bad numbers', () => {
    it.each([Number.NaN, Number.POSITIVE_INFINITY, -1, 0.5, '5', 2 ** 53])(
      'such as %s open no gate, as a cost or as a limit',
      async (bad) => {
        const asCost = await limited({ ...two, cost: () => bad as number })
        const asLimit = await limited({ ...two, limit: () => bad as number, defaultLimit: 2 })
        expect(await asCost.statuses(3)).toEqual([200, 200, 429])
        expect(await asLimit.statuses(3)).toEqual([200, 200, 429])
        for (const wrong of [{ cost: bad }, { limit: bad }]) {
          const limits = [{ ...two, ...wrong } as Limits]
          await expect(driver.start({ limits })).rejects.toThrow(/must be a whole number/)
        }
      },
    )
  })

  describe('an outage of Redis', () => {
    it('replays no command: what was answered meanwhile is counted once at most', async () => {
      const own = await startRedis()
      const client = new Redis(own.url)
      client.on('error', () => undefined)
      onTestFinished(async () => {
        client.disconnect()
        await own.stop()
      })
      const store = redisStore(client, { heartbeatMs: 0 })
      const policy = { name: 'replay', limit: 1_000, window: '1h', store } as const
      const app = await limited({ ...policy, key: () => 'ada' })
      const limiter = createLimiter({ ...policy, deadlineMs: 10_000 })
      const used = async () => {
        const { outcomes } = await limiter.peek('ada')
        return 1_000 - Number(outcomes[0]?.remaining)
      }
      expect(await app.statuses(1)).toEqual([200])
      own.pause()
      const answers = await Promise.all(Array.from({ length: 20 }, () => app.ask()))
      own.resume()

      expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200))
      // What Redis was sent while it was frozen, and what it is owed for those that were not asked, comes to it meanwhile.
      let answered = 1 + 20
      await until('Redis has counted what it was sent', async () => {
        answered += (await app.statuses(1)).filter((status) => status === 200).length
        return answered >= 1 + 20 + 50
      })
      expect(await used()).toBeLessThanOrEqual(answered)
    })
  })

  describe('what headers tell', () => {
    it('is nothing of a hidden policy, and no number where headers are off', async () => {
      const hidden = await limited({ ...two, name: 'login-guard', limit: 1, hidden: true })
      const off = await limited({ ...two, name: 'login-guard', limit: 1, headers: [] })
      for (const app of [hidden, off]) {
        const [first, second] = [await app.ask(), await app.ask()]
        expect(limitFields(first)).toEqual({})
        expect(Object.keys(limitFields(second))).toEqual(['retry-after'])
      }
      expect((await hidden.ask()).body).not.toMatch(/login-guard/)
    })

    it('can be parsed, whatever legal name a policy has', async () => {
      for (const name of ['a"b', 'a\\b', 'a,b;c=1', "it's", ' ', 'x'.repeat(200)]) {
        const app = await limited({ ...two, name })
        const answer = await app.ask()
        for (const field of ['ratelimit', 'ratelimit-policy']) {
          expect(parseList(answer.field(field) ?? '').map(([item]) => item)).toEqual([name])
        }
      }
    })

    it.each(['', 'naïve', 'x\r\nset-cookie: a=1', 'tab\t', '\0'])(
      'is never the name %j, which no field can carry',
      async (name) => {
        const limits = [{ ...two, name }]
        await expect(driver.start({ limits })).rejects.toMatchObject({ code: 'SLUICE_POLICY_NAME' })
      },
    )
  })

  describe('a refusal in a cache', () => {
    it('is stored by none', async () => {
      const app = await limited({ limit: 0, window: '1m' })
      const blocked = await limited({ ...two, block: { ips: ['127.0.0.1'] } })
      expect((await app.ask()).field('cache-control')).toBe('no-store')
      expect((await blocked.ask()).field('cache-control')).toBe('no-store')
    })
  })

  describe('upgrades, messages and events', () => {
    it('an upgrade counts with the requests of its client, and each of its messages', async () => {
      const store = memoryStore()
      const api = { name: 'api', limit: 3, window: '1m', store } as const
      const connections = createLimiter(api)
      const messages = createLimiter({ name: 'messages', limit: 2, window: '1m', store })
      const app = await limited(api)
      app.server.on('upgrade', (request: IncomingMessage, socket: Socket) => {
        void upgrade(request, socket)
      })
      async function upgrade({ socket: { remoteAddress = '' } }: IncomingMessage, socket: Socket) {
        const key = ipKey(remoteAddress)
        const { allowed } = await connections.consume(key)
        if (!allowed) {
          socket.end('HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\n\r\n')
          return
        }
        socket.write(
          'HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n',
        )
        socket.once('end', () => socket.end())
        socket.on('data', (message: Buffer) => {
          void messages.consume(key).then((decision) => {
            socket.write(decision.allowed ? message : 'slow down')
          })
        })
      }

      const socket = await upgraded(app.port)
      expect(await reply(socket)).toMatch(/^HTTP\/1\.1 101/)
      for (const answer of ['one', 'two', 'slow down']) {
        socket.write(answer === 'slow down' ? 'three' : answer)
        expect(await reply(socket)).toBe(answer)
      }
      expect(await app.statuses(2)).toEqual([200, 200])
      expect(await reply(await upgraded(app.port))).toMatch(/^HTTP\/1\.1 429/)
      expect(await app.statuses(1)).toEqual([429])
    })

    it('a stream of events counts once, when it is asked for', async () => {
      let end = (): void => undefined
      const begun = vi.fn(() => {
        return new Promise<void>((resolve) => {
          end = resolve
        })
      })
      const events = { path: '/events', streams: true, reached: begun }
      const app = await start({ limits: [two], routes: [events, { path: '/' }] })
      const stream = app.ask('/events')
      await until('the job runs', () => begun.mock.calls.length > 0)

      expect(await app.statuses(2)).toEqual([200, 429])
      end()
      expect((await stream).status).toBe(200)
      expect(await app.statuses(1, '/events')).toEqual([429])
    })
  })
}

async function upgraded(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  socket.write('GET /live HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n')
  return socket
}

async function reply(socket: Socket): Promise<string> {
  const [chunk] = await once(socket, 'data')
  return String(chunk)
}
