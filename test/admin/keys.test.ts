import { createLimiter } from '@sluice/core'
import { describe, expect, it, vi } from 'vitest'
import { until } from '../support/until.ts'
import { type AdminUnderTest, startAdmin } from './admin-server.ts'
import { storeKinds, storesIn } from './stores.ts'

async function stateOf({ look }: AdminUnderTest, key: unknown, policy = 'burst') {
  const { status, body } = await look(key)
  expect(status, JSON.stringify(body)).toBe(200)
  return body.policies.find((each: { policy: string }) => each.policy === policy)
}

describe.each(storeKinds)('keys by the admin API, with a store in %s', (kind) => {
  const emptyStore = storesIn(kind)
  const start = async () => startAdmin({ store: await emptyStore() })

  it('are found in each form, under the policies that count them', async () => {
    const started = await start()
    const { look, visit } = started
    for (let i = 0; i < 6; i += 1) await visit('ada')
    const typed = await look('user ada')
    expect(typed.body.found).toBe(true)
    expect(typed.body.policies).toMatchObject([
      { policy: 'burst', limit: 5, used: 5, remaining: 0, allowed: false, perWindow: 6 },
      { policy: 'penalty', isPenalty: true, allowed: true, used: 0 },
    ])
    expect(typed.body.policies[0].denied['1m']).toBe(1)
    const { digest } = typed.body
    for (const key of [{ user: 'ada' }, digest, `digest ${digest}`, { digest }, 'user "ada"']) {
      expect(await stateOf(started, key)).toMatchObject({ used: 5 })
    }
    for (const key of ['tenant acme, user ada', { user: 'ada', tenant: 'acme' }]) {
      expect(await stateOf(started, key, 'account')).toMatchObject({ used: 5, limit: 100 })
    }
    expect(await stateOf(started, 'tenant acme', 'anybody')).toMatchObject({ used: 5 })
    expect(await stateOf(started, 'ip 203.0.113.9', 'anybody')).toMatchObject({ used: 0 })
    expect(await stateOf(started, '203.0.113.9', 'anybody')).toMatchObject({ used: 0 })
    expect(await stateOf(started, 'user vip')).toMatchObject({ limit: 50 })
    const code = { store: started.store, name: 'reports', limit: 1, window: '1h' } as const
    const limiter = createLimiter({ ...code, observers: started.metrics })
    for (let i = 0; i < 3; i += 1) await limiter.consume('@user/ada')
    expect((await look(digest)).body.inCode).toEqual([{ policy: 'reports', denied: 2 }])
    await limiter.consume('@user/bob', { cost: 2 })
    expect((await look('bob')).body).toMatchObject({ found: false, inCode: [{ denied: 1 }] })
    for (const key of ['ada', '@user/ada']) {
      expect((await look(key)).body).toMatchObject({ digest, policies: [{ used: 5 }, {}] })
    }
    expect(typed.body.key).toEqual({ user: 'ada' })
    // A comma may be part of a value, and quotes end the doubt.
    for (const [text, key] of [
      ['user Lovelace, Ada', { user: 'Lovelace, Ada' }],
      ['user Lovelace,Ada', { user: 'Lovelace,Ada' }],
      ['user "ada, x"', { user: 'ada, x' }],
      ['@user/ada lovelace', { user: 'ada lovelace' }],
      ['2001:db8::1', { ip: '2001:db8::1' }],
      ['tenant "a, user b" ,  user "c\\"d"', { tenant: 'a, user b', user: 'c"d' }],
    ] as const) {
      expect((await look(text)).body.key, text).toEqual(key)
    }
    expect((await look('stranger')).status).toBe(400)
    const none = await look('user vip, ip ::1')
    expect(none.body.detail).toContain('keys here: user, tenant and user, tenant, ip.')
    for (const key of ['user vip, ip ::1', 'nobody ada', 'user', '']) {
      expect((await look(key)).status, key).toBe(400)
    }
  })

  it('are shown under the limit of their requests, never another', async () => {
    const file = `deadlineMs: 10000
policies: [{ name: burst, window: 1h, key: tenant, limit: { tiers: { pro: 100 }, by: plan, default: 10 } }]`
    const started = await startAdmin({ store: await emptyStore(), file })
    for (let i = 0; i < 40; i += 1) await started.visit('ada', 'acme', 'pro')
    const pro = { limit: 100, used: 40, remaining: 60, allowed: true }
    const { body } = await started.look('tenant acme')
    expect(body).toMatchObject({ found: true, policies: [pro] })
    expect(await stateOf(started, { digest: body.digest })).toMatchObject(pro)
    const nobody = await stateOf(started, 'tenant nobody')
    expect(nobody).toEqual({ ...nobody, policy: 'burst', used: 0 })
    for (const field of ['allowed', 'limit', 'remaining', 'retryAfterMs']) {
      expect(nobody).not.toHaveProperty(field)
    }
    if (kind === 'redis') {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
      const other = await startAdmin({ store: await emptyStore('of another process'), file })
      expect(await stateOf(other, 'tenant acme')).not.toHaveProperty('allowed')
      expect(await stateOf(other, 'tenant acme')).toMatchObject({ used: 40 })
      await until('the other process was told of the limit', async () => {
        await vi.advanceTimersByTimeAsync(200)
        return (await stateOf(other, 'tenant acme')).allowed !== undefined
      })
      vi.useRealTimers()
      expect(await stateOf(other, 'tenant acme')).toMatchObject(pro)
      expect(await stateOf(other, { digest: body.digest })).toMatchObject(pro)
    }
    expect(await started.visit('ada', 'acme')).toBe(429)
    const free = { limit: 10, used: 10, remaining: 0, allowed: false }
    expect(await stateOf(started, 'tenant acme')).toMatchObject(free)
  })

  it('have no verdict if an override depends on more than the key', async () => {
    const file = `deadlineMs: 10000
policies:
  - { name: burst, window: 1h, key: user, limit: 5 }
  - { name: either, window: 1h, key: { firstOf: [tenant, user] }, limit: 5 }
overrides:
  - { policy: burst, key: { tenant: acme }, limit: 50, reason: contract }
  - { policy: either, key: { tenant: acme }, limit: 50, reason: contract }`
    const started = await startAdmin({ store: await emptyStore(), file })
    const [burst, either] = (await started.look('user ada')).body.policies
    expect(burst).not.toHaveProperty('allowed')
    // A request that counts for its user has no tenant.
    expect(either).toMatchObject({ limit: 5, allowed: true })
    for (let i = 0; i < 7; i += 1) await started.visit('ada')
    expect(await stateOf(started, 'user ada')).toMatchObject({ limit: 50, used: 7, allowed: true })
  })

  it('show the level of a bucket, its capacity and its refill', async () => {
    const file = `deadlineMs: 10000
policies:
  - { name: small, algorithm: token-bucket, limit: 15, burst: 10, window: 1h, key: user }
  - { name: large, algorithm: token-bucket, limit: 15, burst: 20, window: 1h, key: user }
  - { name: queue, algorithm: leaky-bucket, limit: 15, queue: 30, window: 1h, key: user }`
    const started = await startAdmin({ store: await emptyStore(), file })
    const levels = async () => (await started.look('user ada')).body.policies
    const of = { limit: 15, refillMs: 3_600_000 }
    const [small, large, queue] = await levels()
    expect([small, queue]).toMatchObject([
      { ...of, used: 0, capacity: 10 },
      { ...of, used: 0, capacity: 31 },
    ])
    // A bucket that holds more than its limit tells its level once less than the limit is left.
    expect(large).toMatchObject({ ...of, capacity: 20 })
    expect(large.used).toBeUndefined()
    await started.visit('ada')
    expect(await levels()).toMatchObject([{ used: 1 }, {}, { used: 1 }])
  })

  it('explain why nothing is found if a function computes the key', async () => {
    const file = `policies: [{ name: login, limit: 1, window: 1h, key: login }]\npenalty: { after: never, key: login }`
    const started = await startAdmin({ store: await emptyStore(), file })
    for (let i = 0; i < 2; i += 1) await started.visit('ada')
    const note = expect.stringContaining('A function in your code creates the keys of login.')
    expect((await started.look('login ada')).body).toMatchObject({ found: false, note })
    for (const action of ['reset', 'unblock']) {
      const { body } = await started.act(action, { key: 'login ada' })
      expect(body).toMatchObject({ found: false, note })
    }
    const blocked = await started.act('block', { key: 'login zoe', for: '1h' })
    expect(blocked.body).toMatchObject({ found: true, note })
    const whole = await started.act('reset', { key: 'login login of ada' })
    expect(whole.body).toMatchObject({ found: true })
    expect(whole.body.note).toBeUndefined()
    expect(await started.visit('ada')).toBe(200)
    expect((await started.act('reset', { key: 'ip ::1' })).body.detail).toBe(
      'No policy counts ip by itself; keys here: login.',
    )
  })

  it('are reset, in all policies or some, and report whether anything existed', async () => {
    const started = await start()
    for (let i = 0; i < 6; i += 1) await started.visit('ada')
    const dry = await started.act('reset', { key: 'user ada', dryRun: true })
    expect(dry.body).toMatchObject({ found: true, dryRun: true })
    expect(await started.visit('ada')).toBe(429)
    expect((await started.act('reset', { key: 'user nobody' })).body.found).toBe(false)
    const other = await started.act('reset', { key: 'user ada', policies: ['penalty'] })
    expect(other.body).toMatchObject({ found: false, policies: [{ policy: 'penalty' }] })
    expect(await started.visit('ada')).toBe(429)
    const done = await started.act('reset', { key: 'user ada' })
    expect(done.body).toMatchObject({ found: true, dryRun: false })
    expect(await started.visit('ada')).toBe(200)
    expect((await started.act('reset', { key: 'user ada', policies: ['x'] })).status).toBe(400)
  })

  it('are blocked and unblocked, by their digest too', async () => {
    const started = await start()
    await started.visit('ada')
    const { digest } = (await started.look('user ada')).body
    const blocked = await started.act('block', { key: { digest }, for: '1h' })
    expect(blocked.body).toMatchObject({ found: true, policies: [{ found: false }] })
    expect(await started.visit('ada')).toBe(429)
    const blocks = { allowed: false, denied: { '1m': 1 } }
    expect(await stateOf(started, 'user ada', 'penalty')).toMatchObject(blocks)
    const { lists } = (await started.call('GET', 'top')).body
    expect(lists.map(({ policy }: { policy: string }) => policy)).toContain('penalty')
    const again = await started.act('block', { key: 'user ada', for: 60_000 })
    expect(again.body.policies).toMatchObject([{ policy: 'penalty', found: true }])
    expect((await started.act('unblock', { key: 'user ada' })).body.found).toBe(true)
    expect((await started.act('unblock', { key: 'user ada' })).body.found).toBe(false)
    expect(await started.visit('ada')).toBe(200)
    expect((await started.act('block', { key: 'ip ::1', for: '1h' })).status).toBe(400)
    expect((await started.act('block', { key: 'user ada', for: '1 h' })).status).toBe(400)
    expect((await started.act('block', { key: 'user ada', for: '20y' })).status).toBe(400)
    const acme = (await started.look('tenant acme')).body
    expect((await started.act('block', { key: acme.digest, for: '1h' })).status).toBe(400)
    const nobody = { key: { digest: 'AAAAAAAAAAAAAAAAAAAAAA' }, for: '1h' }
    expect((await started.act('block', nobody)).status).toBe(kind === 'memory' ? 404 : 200)
  })

  it('are blocked by a digest of several kinds, with a note', async () => {
    const policies = '[{ name: all, limit: 9, window: 1h, key: { firstOf: [tenant, user] } }]'
    const file = `{ policies: ${policies}, penalty: { after: never, key: user } }`
    const started = await startAdmin({ store: await emptyStore(), file })
    await started.visit('ada')
    const { digest } = (await started.look('tenant acme')).body
    const { body } = await started.act('block', { key: digest, for: '1h', dryRun: true })
    expect(body.note).toMatch(/^The penalty does not count tenant: .* Pass the key itself/)
  })

  it('get a temporary limit', async () => {
    const started = await start()
    for (let i = 0; i < 6; i += 1) await started.visit('ada')
    const limit = { key: 'user ada', policy: 'burst', limit: 6 }
    const later = new Date(Date.now() + 3_600_000).toISOString()
    // One that has expired is no part of the next change.
    const soon = new Date(Date.now() + 20).toISOString()
    await started.act('limit', { ...limit, limit: 7, until: soon })
    await until('it has expired', () => !JSON.stringify(started.policies.file).includes(soon))
    const { body } = await started.act('limit', { ...limit, until: later })
    const raised = { ...limit, key: { user: 'ada' }, until: later }
    expect(body.differences[0].to[0]).toEqual(raised)
    expect((await started.call('GET', 'audit')).body.records[0].changes).toEqual(body.differences)
    expect([await started.visit('ada'), await started.visit('ada')]).toEqual([200, 429])
    const keys = [{ key: { user: 'a*' } }, { key: { digest: 'AAAAAAAAAAAAAAAAAAAAAA' } }]
    for (const wrong of [{ until: '2020-01-01T00:00:00Z' }, { policy: 'nothing' }, ...keys])
      expect((await started.act('limit', { ...raised, ...wrong })).status).toBe(400)
  })

  it('are identities: a shared route is not', async () => {
    const file = `
deadlineMs: 10000
policies:
  - { name: spot, limit: 5, window: 1h, key: spot }
  - { name: either, limit: 5, window: 1h, key: { firstOf: [user, route] } }
  - { name: client, limit: 5, window: 1h, key: user }
penalty: { after: never, key: route }`
    const started = await startAdmin({ store: await emptyStore(), file })
    await started.visit('ada')
    const limit = { limit: 9, until: new Date(Date.now() + 3_600_000).toISOString() }
    const [policy, route] = ['spot', 'unmatched']
    const acts: readonly (readonly [string, object])[] = [
      ['limit', { key: { route }, policy: 'client', ...limit }],
      ['limit', { key: { route }, policy: 'either', ...limit }],
      ['limit', { key: { spot: route }, policy, ...limit }],
      ['reset', { key: { spot: route } }],
      ['reset', { key: { route } }],
      ['block', { key: { route }, for: '1h' }],
      ['unblock', { key: { route } }],
    ]
    for (const [action, body] of acts) {
      const { status, body: answer } = await started.act(action, body)
      expect(status, `${action} ${JSON.stringify(body)}`).toBe(400)
      expect(answer.detail).toMatch(/route|No policy of this name/)
    }
    const spot = await started.look({ spot: route })
    expect(spot.body.policies).toMatchObject([{ policy: 'spot', used: 1 }])
    const { digest } = spot.body
    const { body } = await started.act('reset', { key: { digest } })
    expect(body.policies).toMatchObject([{ policy: 'client', found: false }])
    expect((await started.act('block', { key: { digest }, for: '1h' })).status).toBe(400)
    expect(await stateOf(started, { spot: route }, 'spot')).toMatchObject({ used: 1 })
    expect((await started.act('reset', { key: 'user ada' })).body.policies).toMatchObject([
      { policy: 'either', found: true },
      { policy: 'client', found: true },
    ])
  })

  it('are unlocked all together under one policy, and no others', async () => {
    const started = await start()
    const users = Array.from({ length: 30 }, (_, index) => `user-${index}`)
    for (const user of users) for (let i = 0; i < 6; i += 1) await started.visit(user)
    const dry = await started.act('unlock', { policy: 'burst', dryRun: true })
    expect(dry.body).toMatchObject({ keys: users.length, dryRun: true })
    expect(await started.visit('user-7')).toBe(429)
    const { body } = await started.act('unlock', { policy: 'burst' })
    expect(body.keys).toBe(users.length)
    for (const user of users) expect(await stateOf(started, { user })).toMatchObject({ used: 0 })
    expect(await stateOf(started, 'tenant acme', 'anybody')).toMatchObject({ used: 150 })
    expect((await started.act('unlock', { policy: 'nothing' })).status).toBe(404)
  })

  it('are in the audit trail, before and after, as digests', async () => {
    const started = await start()
    await started.visit('ada')
    const { body } = await started.act('reset', { key: 'user ada' })
    await started.act('reset', { key: 'user ada', dryRun: true })
    const [done, begun, ...rest] = (await started.call('GET', 'audit')).body.records
    expect(done).toMatchObject({
      ...{ phase: 'done', action: 'keys.reset', actor: 'ada', reason: 'a test' },
      result: { found: true },
      target: { digest: body.digest, kind: 'user', policies: ['burst', 'penalty'] },
    })
    expect(begun).toMatchObject({ phase: 'begun', id: done.id })
    expect(rest).toMatchObject([{ action: 'policies.file' }])
  })

  it('have a record of each concurrent action', async () => {
    const { call, act } = await start()
    const users = Array.from({ length: 60 }, (_, index) => `user-${index}`)
    const answers = await Promise.all(users.map((user) => act('reset', { key: { user } })))
    expect(answers.map(({ status }) => status)).toEqual(users.map(() => 200))
    const { records } = (await call('GET', 'audit?most=1000')).body
    const phases = records.map(({ phase }: { phase: string }) => phase).sort()
    expect(phases).toEqual([...Array(60).fill('begun'), ...Array(61).fill('done')])
  })
})

it.each(['127.0.0.0/8', '127.0.0.6.6', 'banana'])(
  'an invalid address is no key: %s',
  async (ip) => {
    const { act, look } = await startAdmin({ file: 'penalty: { after: never }' })
    for (const found of [await look(`ip ${ip}`), await act('block', { key: { ip }, for: '1h' })]) {
      expect([found.status, found.body.detail]).toEqual([
        400,
        `key.ip must be one address, such as '203.0.113.9' (to block a network, set block: { ips: ['10.0.0.0/8'] } in the policy file), but is '${ip}'`,
      ])
    }
  },
)

it('the audit sink receives each step, and an action that it rejects is not started', async () => {
  const heard: string[] = []
  const auditSink = vi.fn(({ action, phase }) => void heard.push(`${action} ${phase}`))
  const started = await startAdmin({ admin: { auditSink } })
  await started.visit('ada')
  auditSink.mockImplementationOnce(() => {
    throw new Error('the trail is full')
  })
  expect((await started.act('reset', { key: 'user ada' })).status).toBe(503)
  expect(await stateOf(started, 'user ada')).toMatchObject({ used: 1 })
  expect((await started.act('reset', { key: 'user ada' })).status).toBe(200)
  await started.change('kill', { kill: 'shadow' })
  expect(heard).toEqual(['keys.reset begun', 'keys.reset done', 'policies.kill done'])
})
