import { memoryStore } from '@sluice/core'
import { all, apiKey, bearer, firstOf, type GuardFields, ip, user } from '@sluice/http'
import { describe, expect, it, vi } from 'vitest'
import { type Client, clientsOf } from './exchange.ts'

const one = { limit: 1, window: '1m' } as const

describe.each([
  ['x-api-key', (key: string) => key, apiKey],
  ['authorization', (token: string) => `Bearer ${token}`, bearer],
] as const)('%s with verify', (field, written, resolver) => {
  const with_ = (credential: string) => ({ [field]: written(credential) })
  const issued = (credential: string) => credential === 'ada' || credential === 'bob'

  it('stops 200 logins with made-up credentials at the limit', async () => {
    const verify = async (credential: string) => issued(credential)
    const rule = { limit: 5, window: '15m' } as const
    const { ask } = clientsOf({
      ...{ limit: 1_000, window: '1m', key: firstOf(resolver<Client>({ verify }), ip()) },
      routes: { 'POST /login': { ...rule, chargeWhen: (_, { status }) => status === 401 } },
    })
    const login = { method: 'POST', path: '/login' }
    const tried = await Promise.all(
      Array.from({ length: 200 }, async (_, i) => {
        const { status, hold } = await ask(with_(`made up ${i}`), login)
        hold?.finish(401)
        return status
      }),
    )

    expect(tried.filter((status) => status === 200)).toHaveLength(5)
  })

  it('counts each issued credential separately', async () => {
    const key = firstOf(resolver<Client>({ verify: issued }), ip())
    const { statuses } = clientsOf({ ...one, key })

    expect(await statuses(2, with_('ada'))).toEqual([200, 429])
    expect(await statuses(1, with_('bob'))).toEqual([200])
    expect(await statuses(1, with_('made up'))).toEqual([200])
    expect(await statuses(1)).toEqual([429])
  })

  it('passes the request to verify, and throws what it throws', async () => {
    const verify = vi.fn((_credential: string, _client: Client): boolean => {
      throw new Error('no database')
    })
    const { ask } = clientsOf({ ...one, key: resolver({ verify }) })
    const headers = { ...with_('ada'), user: 'eve' }

    await expect(ask(headers)).rejects.toThrow('no database')
    expect(verify).toHaveBeenCalledExactlyOnceWith('ada', { headers })
  })

  it.each([undefined, null, 0, 'yes', 1, {}])(
    'trusts no credential for which verify returns %j',
    async (answer) => {
      const warn = vi.spyOn(console, 'warn').mockReturnValue()
      const { statuses } = clientsOf({ ...one, key: resolver({ verify: () => answer as true }) })
      expect(await statuses(1, with_('ada'))).toEqual([200])
      expect(await statuses(1, with_('bob'))).toEqual([429])
      warn.mockRestore()
    },
  )
})

describe('req.rateLimit.reset()', () => {
  const byUser = user(({ headers }: Client) => headers.user)
  const ada = { user: 'ada' }

  it('resets all identities of a request, wherever its limits are', async () => {
    const login: GuardFields<Client>['policies'] = [
      { limit: 3, window: '15m', key: all(byUser, ip()) },
      { name: 'address', limit: 9, window: '15m', key: ip() },
    ]
    const { ask, statuses } = clientsOf({
      ...{ name: 'all', limit: 100, window: '1m' },
      routes: { '/': { combine: 'add', policies: login } },
    })
    expect(await statuses(4, { user: 'eve' })).toEqual([200, 200, 200, 429])
    expect(await statuses(2, ada)).toEqual([200, 200])
    const { decision } = await ask(ada)
    await decision?.reset()

    const { fields } = await ask(ada)
    expect(fields.RateLimit).toMatch(/^"all";r=99;t=60, ".*";r=2;t=900, "address";r=8;/)
    // Whoever else came from the address has the count of that pair still.
    expect(await statuses(1, { user: 'eve' })).toEqual([429])
  })

  it('lifts the block of a client that proves its identity after a refusal', async () => {
    const penalty = { after: 1, within: '1m', for: '1h' } as const
    const { ask } = clientsOf({ ...one, key: byUser, penalty })
    for (const status of [200, 429, 200, 429]) {
      const { decision, ...answer } = await ask(ada)
      expect(answer.status).toBe(status)
      if (status === 429) await decision?.reset()
    }
  })

  it('refunds nothing twice, and reports whether anything existed', async () => {
    const { ask } = clientsOf({ ...one, limit: 2, refundWhen: () => true, store: memoryStore() })
    for (let i = 0; i < 4; i += 1) {
      const { status, decision, hold } = await ask()
      expect([status, await decision?.reset(), await decision?.reset()]).toEqual([200, true, false])
      hold?.finish(200)
    }
  })
})
