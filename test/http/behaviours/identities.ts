import {
  all,
  apiKey,
  bearer,
  firstOf,
  ip,
  type RequestDecision,
  user as userKey,
} from '@sluice/http'
import { describe, expect, it, vi } from 'vitest'
import type { Behaviour } from '../../adapters/adapter-conformance.ts'
import type { NativeRequest } from '../../adapters/drivers/driver.ts'

const user = (name: string) => ({ headers: { 'x-user': name } })
const byUser = (request: NativeRequest) => request.headers['x-user'] as string | undefined

/** Whom a credential stands for, and how somebody is unlocked. */
export const identities: Behaviour = ({ start, limited }) => {
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
          limit: 1_000,
          window: '1m',
          key,
          routes: {
            'POST /login': {
              limit: 5,
              window: '15m',
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

    it('gives nothing back twice, and says whether anything was there', async () => {
      const told: unknown[] = []
      const app = await start({
        limits: [{ ...{ name: 'x', limit: 2, window: '1m' }, refundWhen: () => true }],
        routes: [
          {
            path: '/',
            async reached({ rateLimit }) {
              told.push(await rateLimit?.reset(), await rateLimit?.reset())
            },
          },
        ],
      })
      expect(await app.statuses(4)).toEqual([200, 200, 200, 200])
      expect(told.slice(0, 2)).toEqual([true, false])
    })
  })
}

function raise(message: string): never {
  throw new Error(message)
}
