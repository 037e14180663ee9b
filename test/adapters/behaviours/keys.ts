import { createLimiter, memoryStore } from '@sluice/core'
import type { RequestDecision } from '@sluice/http'
import { all, apiKey, bearer, firstOf, ip, route, tenant, user as userKey } from '@sluice/http'
import { describe, expect, it, vi } from 'vitest'
import type { Behaviour } from '../adapter-conformance.ts'
import { limitFields } from '../ask.ts'
import type { NativeRequest } from '../drivers/driver.ts'

const user = (name: string) => ({ headers: { 'x-user': name } })
const byUser = (request: NativeRequest) => request.headers['x-user'] as string | undefined

/** Who is counted. */
export const keys: Behaviour = ({ start, limited }) => {
  it('counts each client address apart', async () => {
    const app = await limited({ limit: 1, window: '1m' })

    expect(await app.statuses(2)).toEqual([200, 429])
    expect(await app.statuses(2, '/', { from: '127.0.0.2' })).toEqual([200, 429])
  })

  it.each([
    ['a function', byUser],
    ['an async function', async (request: NativeRequest) => byUser(request)],
  ])('counts whom %s names', async (_, key) => {
    const app = await limited({ limit: 1, window: '1m', key })

    expect(await app.statuses(2, '/', user('ada'))).toEqual([200, 429])
    expect(await app.statuses(1, '/', user('bob'))).toEqual([200])
    expect(await app.statuses(1, '/', user('toString'))).toEqual([200])
    expect(await app.statuses(1, '/', user('__proto__'))).toEqual([200])
  })

  it('calls a key function once a request, though several policies use it', async () => {
    const key = vi.fn(byUser)
    const policies = [
      { name: 'a', limit: 5, window: '1m' },
      { name: 'b', limit: 5, window: '1h' },
    ]
    const app = await limited({ key, policies })
    await app.ask('/', user('ada'))

    expect(key).toHaveBeenCalledTimes(1)
  })

  it.each([
    ['throws', () => raise('no key')],
    ['rejects', async () => raise('no key')],
  ])('hands on to the error handling when a key function %s', async (_, key) => {
    const onError = vi.fn()
    const app = await start({ limits: [{ limit: 1, window: '1m', key }], onError })

    const answer = await app.ask()

    expect([answer.status, answer.body]).toEqual([500, 'no key'])
    expect(limitFields(answer)).toEqual({})
    expect(onError).toHaveBeenCalledTimes(1)
  })

  it.each([undefined, null, '', 0, Number.NaN])(
    'counts the address where the key is %s, never a shared bucket',
    async (missing) => {
      const key = (request: NativeRequest) => byUser(request) ?? (missing as null)
      const app = await limited({ limit: 1, window: '1m', key })

      expect(await app.statuses(2)).toEqual([200, 429])
      expect(await app.statuses(1, '/', { from: '127.0.0.2' })).toEqual([200])
      expect(await app.statuses(1, '/', user('undefined'))).toEqual([200])
    },
  )

  it("onMissingKey 'deny' refuses, without fields and without a promise", async () => {
    const app = await limited({ limit: 9, window: '1m', key: byUser, onMissingKey: 'deny' })

    const answer = await app.ask()

    expect(answer.status).toBe(429)
    expect(answer.body).toBe('{"type":"about:blank","title":"Too Many Requests","status":429}')
    expect(answer.field('cache-control')).toBe('no-store')
    expect(limitFields(answer)).toEqual({})
    expect(await app.statuses(1, '/', user('ada'))).toEqual([200])
  })

  it("onMissingKey 'skip' passes, without headers", async () => {
    const app = await limited({ limit: 1, window: '1m', key: byUser, onMissingKey: 'skip' })

    expect(limitFields(await app.ask())).toEqual({})
    expect(await app.statuses(3)).toEqual([200, 200, 200])
    expect(await app.statuses(2, '/', user('ada'))).toEqual([200, 429])
  })

  it("onMissingKey 'skip' leaves out the policy that has no key, and enforces the others", async () => {
    const app = await limited({
      onMissingKey: 'skip',
      policies: [
        { name: 'account', limit: 5, window: '1m', key: byUser },
        { name: 'address', limit: 2, window: '1m', key: ip() },
      ],
    })

    expect((await app.ask()).field('ratelimit-policy')).toBe('"address";q=2;w=60')
    expect(await app.statuses(2)).toEqual([200, 429])
  })

  it("onMissingKey 'error' is the application's to handle", async () => {
    const onError = vi.fn()
    const limits = [{ limit: 1, window: '1m', key: byUser, onMissingKey: 'error' as const }]
    const app = await start({ limits, onError })

    expect((await app.ask()).status).toBe(500)
    expect(onError).toHaveBeenCalledWith(expect.objectContaining({ code: 'SLUICE_KEY_MISSING' }))
    expect(await app.statuses(1, '/', user('ada'))).toEqual([200])
  })

  it('takes a key of a megabyte', async () => {
    const huge = 'k'.repeat(1 << 20)
    const key = (request: NativeRequest) => huge + (byUser(request) ?? '')
    const app = await limited({ limit: 1, window: '1m', key })

    expect(await app.statuses(2)).toEqual([200, 429])
    expect(await app.statuses(1, '/', user('ada'))).toEqual([200])
  })

  it('locks nobody out who shares an account with an attacker', async () => {
    const app = await limited({
      policies: [
        { name: 'account-ip', limit: 2, window: '1m', key: all(byUser, ip()) },
        { name: 'account', limit: 20, window: '1m', key: byUser },
      ],
    })
    const victim = { ...user('ada'), from: '127.0.0.2' }

    expect(await app.statuses(9, '/', user('ada'))).toEqual([200, 200, ...Array(7).fill(429)])
    expect(await app.statuses(1, '/', victim)).toEqual([200])
  })

  describe('req.rateLimit.reset()', () => {
    const login = { method: 'POST', path: '/login' } as const
    const right = { ...user('ada'), method: 'POST' }

    it('forgets what all identities of a request have taken, wherever its limits stand', async () => {
      const app = await start({
        limits: [
          {
            ...{ name: 'all', limit: 100, window: '1m' },
            routes: {
              'POST /login': {
                combine: 'add',
                policies: [
                  { limit: 3, window: '15m', key: all(userKey(byUser), ip()) },
                  { name: 'address', limit: 9, window: '15m', key: ip() },
                ],
              },
            },
          },
        ],
        routes: [
          {
            ...login,
            reached: async (request) => {
              if (request.headers['x-right']) await request.rateLimit?.reset()
            },
          },
        ],
      })
      const wrong = { ...user('eve'), method: 'POST' }
      expect(await app.statuses(4, '/login', wrong)).toEqual([200, 200, 200, 429])
      expect(await app.statuses(2, '/login', right)).toEqual([200, 200])
      const done = { ...right, headers: { ...right.headers, 'x-right': 'yes' } }
      expect(await app.statuses(1, '/login', done)).toEqual([200])

      const answer = await app.ask('/login', right)
      expect(answer.field('ratelimit')).toMatch(/^"all";r=99;t=60, ".*";r=2;t=900, "address";r=8;/)
      // Whoever else came from the address has the count of that pair still.
      expect(await app.statuses(1, '/login', wrong)).toEqual([429])
    })

    it('lifts the block of whoever is refused and then proves who it is', async () => {
      const app = await limited({
        ...{ limit: 1, window: '1m', key: userKey(byUser) },
        penalty: { after: 1, within: '1m', for: '1h' },
        async reply(decision) {
          await (decision as RequestDecision).reset()
          return 'once more'
        },
      })
      expect(await app.statuses(4, '/', user('ada'))).toEqual([200, 418, 200, 418])
    })

    it('gives nothing back twice', async () => {
      const app = await start({
        limits: [{ ...{ name: 'x', limit: 2, window: '1m' }, refundWhen: () => true }],
        routes: [{ path: '/', reached: async ({ rateLimit }) => void (await rateLimit?.reset()) }],
      })
      expect(await app.statuses(4)).toEqual([200, 200, 200, 200])
    })

    it('is keyed as keyOf says', async () => {
      const store = memoryStore()
      const pair = all(userKey(byUser), ip())
      const options = { name: 'login', limit: 1, window: '1m', store } as const
      const app = await limited({ ...options, key: pair })
      expect(await app.statuses(2, '/', user('ada'))).toEqual([200, 429])
      await createLimiter(options).reset(pair.keyOf('ada', '127.0.0.1'))
      expect(await app.statuses(2, '/', user('ada'))).toEqual([200, 429])
    })
  })

  it('takes the ready-made resolvers', async () => {
    const app = await limited({ limit: 1, window: '1m', key: apiKey() })
    const carrying = (key: string) => ({ headers: { 'x-api-key': key } })

    expect(await app.statuses(2, '/', carrying('one'))).toEqual([200, 429])
    expect(await app.statuses(1, '/', carrying('two'))).toEqual([200])
  })

  describe.each([
    ['x-api-key', (key: string) => key, apiKey],
    ['authorization', (token: string) => `Bearer ${token}`, bearer],
  ] as const)('%s with verify', (field, written, resolver) => {
    const with_ = (credential: string) => ({ headers: { [field]: written(credential) } })
    const issued = (credential: string) => credential === 'ada' || credential === 'bob'

    it('lets 200 wrong logins with made-up credentials get no further than the limit', async () => {
      let reached = 0
      const key = firstOf(
        resolver<NativeRequest>({ verify: async (credential) => issued(credential) }),
        ip(),
      )
      const limits = [
        {
          ...{ limit: 1_000, window: '1m', key },
          routes: {
            'POST /login': {
              ...{ limit: 5, window: '15m' },
              chargeWhen: (_: NativeRequest, { status }: { status: number }) => status === 401,
            },
          },
        } as const,
      ]
      const route = { method: 'POST', path: '/login', answer: { status: 401 } } as const
      const app = await start({ limits, routes: [{ ...route, reached: () => (reached += 1) }] })

      const statuses = await Promise.all(
        Array.from({ length: 200 }, (_, i) =>
          app.statuses(1, '/login', { method: 'POST', ...with_(`made up ${i}`) }),
        ),
      )

      expect(statuses.flat().filter((status) => status !== 429)).toHaveLength(5)
      expect(reached).toBe(5)
    })

    it('counts each credential that you issued apart', async () => {
      const app = await limited({
        ...{ limit: 1, window: '1m' },
        key: firstOf(resolver<NativeRequest>({ verify: issued }), ip()),
      })

      expect(await app.statuses(2, '/', with_('ada'))).toEqual([200, 429])
      expect(await app.statuses(1, '/', with_('bob'))).toEqual([200])
      expect(await app.statuses(1, '/', with_('made up'))).toEqual([200])
      expect(await app.statuses(1)).toEqual([429])
    })

    it('shows verify the request, and hands on what it throws', async () => {
      const seen: unknown[] = []
      const verify = (credential: string, request: NativeRequest) => {
        seen.push(credential, request.headers['x-user'])
        return raise('no database')
      }
      const app = await limited({ limit: 1, window: '1m', key: resolver({ verify }) })

      const { headers } = with_('ada')
      const answer = await app.ask('/', { headers: { ...headers, 'x-user': 'eve' } })

      expect([answer.status, answer.body]).toEqual([500, 'no database'])
      expect(seen).toEqual(['ada', 'eve'])
    })

    it.each([undefined, null, 0, 'yes', 1, {}])(
      'believes nobody for whom verify answers %j',
      async (answer) => {
        vi.spyOn(console, 'warn').mockReturnValue()
        const app = await limited({
          ...{ limit: 1, window: '1m' },
          key: resolver<NativeRequest>({ verify: () => answer as true }),
        })

        expect(await app.statuses(1, '/', with_('ada'))).toEqual([200])
        expect(await app.statuses(1, '/', with_('bob'))).toEqual([429])
      },
    )
  })

  it('counts users and tenants by their ids, and the address of who has none', async () => {
    const idOf = (request: NativeRequest) => {
      const name = byUser(request)
      return name === undefined ? undefined : Number(name)
    }
    const tenantOf = async (request: NativeRequest) => request.headers['x-tenant'] as string
    const key = firstOf(userKey(idOf), tenant(tenantOf), ip())
    const app = await limited({ limit: 1, window: '1m', key })

    expect(await app.statuses(2, '/', user('42'))).toEqual([200, 429])
    expect(await app.statuses(1, '/', user('43'))).toEqual([200])
    expect(await app.statuses(1, '/', { headers: { 'x-tenant': '42' } })).toEqual([200])
    expect(await app.statuses(2, '/', user('no number'))).toEqual([200, 429])
    expect(await app.statuses(1)).toEqual([429])
  })

  it('300 random ids in a path are one route, and one key', async () => {
    const app = await start({
      routes: [{ path: '/users/:id', limits: { limit: 5, window: '1m', key: route() } }],
    })
    let passed = 0
    for (let i = 0; i < 300; i += 1) {
      const { status } = await app.ask(`/users/${Math.random()}`)
      if (status === 200) passed += 1
    }

    expect(passed).toBe(5)
  })

  it('aliases of a path open no second bucket of the route', async () => {
    const app = await start({
      routes: [{ path: '/users/:id', limits: { limit: 3, window: '1m' } }],
    })
    expect(await app.statuses(3, '/users/42')).toEqual([200, 200, 200])

    const aliases = ['/users/42', '/users/4%32', '/users/42?x', '/users/%00', '/users/a%2fb']
    const more = ['/users/42/', '/USERS/42', '/Users/42', '//users/42', '/users//42', '/./users/42']
    for (const path of [...aliases, ...more]) {
      // What the framework routes elsewhere does not reach the route at all.
      expect([404, 429], path).toContain((await app.ask(path)).status)
    }
    for (const path of aliases) expect((await app.ask(path)).status, path).toBe(429)
  })
}

function raise(message: string): never {
  throw new Error(message)
}
