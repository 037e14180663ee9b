import { describe, expect, it } from 'vitest'
import { startAdmin } from './admin-server.ts'
import { storeKinds, storesIn } from './stores.ts'

const later = '2096-12-31T23:59:59Z'

/** Policies and a penalty that count a user within a tenant. */
const file = `
deadlineMs: 10000
policies:
  - { name: seat, limit: 3, window: 1h, key: { all: [tenant, user] } }
penalty: { after: never, key: { all: [tenant, user] } }
overrides:
  - { policy: seat, key: { tenant: big, user: '*' }, limit: 4, reason: contract }
`

describe.each(storeKinds)('a key of two parts, with a store in %s', (kind) => {
  const emptyStore = storesIn(kind)

  async function start() {
    const started = await startAdmin({ file, store: await emptyStore() })
    const { visit } = started
    const key = 'tenant acme, user ada'
    return {
      ...started,
      act: (action: string, body: object) => started.act(action, { key, ...body }),
      look: async (asked: unknown = key) => (await started.look(asked)).body,
      async visits(count: number, user = 'ada', tenant = 'acme') {
        const statuses: number[] = []
        for (let i = 0; i < count; i += 1) statuses.push(await visit(user, tenant))
        return statuses
      },
    }
  }

  it('is found in any order and form, and differs from its parts', async () => {
    const { call, look, visits } = await start()
    await visits(2)
    const { digest } = await look()
    const ada = { user: 'ada', tenant: 'acme' }
    for (const key of ['user ada, tenant acme', 'tenant acme,user "ada"', ada]) {
      const seat = { policy: 'seat', used: 2, limit: 3 }
      expect(await look(key)).toMatchObject({ found: true, policies: [seat, { isPenalty: true }] })
    }
    // A digest does not tell whose override applies.
    for (const key of [{ digest }, digest]) {
      expect(await look(key)).toMatchObject({ found: true, policies: [{ used: 2 }, {}] })
    }
    for (const key of ['user ada, tenant other', 'tenant ada, user acme']) {
      expect((await look(key)).found, key).toBe(false)
    }
    for (const key of ['user ada', 'tenant acme', 'tenant acme, user ada, ip ::1']) {
      expect((await call('POST', 'keys/lookup', { body: { key } })).status, key).toBe(400)
    }
  })

  it('is reset, blocked and unblocked, also by digest, without its neighbours', async () => {
    const { act, visits, look } = await start()
    await visits(3)
    await visits(3, 'bob')
    await visits(3, 'ada', 'other')
    const { digest } = await look()
    expect((await act('reset', {})).body).toMatchObject({ found: true })
    expect(await visits(1)).toEqual([200])
    expect([await visits(1, 'bob'), await visits(1, 'ada', 'other')]).toEqual([[429], [429]])
    expect((await act('block', { for: '1h' })).body).toMatchObject({ found: true })
    expect([await visits(1), await visits(1, 'eve')]).toEqual([[429], [200]])
    expect((await act('unblock', { key: { digest } })).body).toMatchObject({ found: true })
    expect(await visits(1)).toEqual([200])
  })

  it('has its own override before that of a pattern', async () => {
    const { act, visits, look, call } = await start()
    expect(await visits(5, 'eve', 'big')).toEqual([200, 200, 200, 200, 429])
    const eve = { tenant: 'big', user: 'eve' }
    const limit = { key: eve, policy: 'seat', limit: 6, until: later }
    expect((await act('limit', limit)).status).toBe(200)
    expect(await visits(3, 'eve', 'big')).toEqual([200, 200, 429])
    expect((await look(eve)).policies[0]).toMatchObject({ limit: 6, used: 6 })
    expect(await visits(5, 'fay', 'big')).toEqual([200, 200, 200, 200, 429])
    expect((await act('limit', { ...limit, key: { ...eve, user: 'e*' } })).status).toBe(400)
    await visits(4)
    const { overrides } = (await call('GET', 'policies')).body
    expect(overrides).toMatchObject([{ key: eve }, { key: { tenant: 'big', user: '*' } }])
  })

  it('stays distinct if its parts have delimiters, patterns or other scripts', async () => {
    const { act, visits, look } = await start()
    const odd = { tenant: 'a, user b', user: '100%25 é😀 "x" \\ *' }
    expect((await look(odd)).found).toBe(false)
    expect((await look(`tenant ${JSON.stringify(odd.tenant)}, user z`)).found).toBe(false)
    expect((await act('block', { key: odd, for: '1h' })).body).toMatchObject({ found: true })
    expect((await look({ tenant: 'a', user: `b, user ${odd.user}` })).found).toBe(false)
    expect((await look(odd)).policies[1]).toMatchObject({ allowed: false })
    expect(await visits(1, 'b', 'a')).toEqual([200])
  })
})
