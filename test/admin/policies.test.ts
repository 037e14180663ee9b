import { describe, expect, it } from 'vitest'
import { everything, startAdmin } from './admin-server.ts'
import { storeKinds, storesIn } from './stores.ts'

const reason = 'a test'

const limitOf = (value: number) => ({ set: [{ policy: 'burst', field: 'limit', value }] })

describe.each(storeKinds)('policies by the admin API, with a store in %s', (kind) => {
  const emptyStore = storesIn(kind)

  it('change for the next request, without losing a count', async () => {
    const started = await startAdmin({ store: await emptyStore() })
    const { call, visit } = started
    const before = await call('GET', 'policies')
    expect(before.body.policies[0]).toMatchObject({ name: 'burst', limit: 5, routes: ['*'] })
    for (let i = 0; i < 5; i += 1) expect(await visit('ada')).toBe(200)
    expect(await visit('ada')).toBe(429)
    const headers = { 'if-match': before.etag ?? '' }
    const body = { ...limitOf(6), reason }
    expect((await call('POST', 'policies/changes', { headers, body })).body).toMatchObject({
      ...{ dryRun: false, number: 1, version: started.policies.version },
      differences: [{ path: 'policies.burst.limit', from: 5, to: 6, newCount: false }],
    })
    expect([await visit('ada'), await visit('ada')]).toEqual([200, 429])
  })

  it('are refused where somebody else was first, or the version is not named', async () => {
    const started = await startAdmin({ store: await emptyStore() })
    const { call, policies } = started
    const { version } = policies
    const [one, other] = await Promise.all([
      started.change('changes', limitOf(6), version),
      started.change('changes', limitOf(7), version),
    ])
    expect([one.status, other.status].sort()).toEqual([200, 409])
    expect((await call('GET', 'audit')).body.records).toHaveLength(2)
    const unnamed = await call('POST', 'policies/changes', { body: { ...limitOf(8), reason } })
    expect(unnamed.status).toBe(428)
    for (const text of ['6', '"6"', '"x.y"', '*', '"a.1\\"']) {
      const headers = { 'if-match': text }
      const answer = await call('POST', 'policies/kill', { headers, body: { kill: 'off', reason } })
      expect(answer.status, text).toBe(400)
    }
    expect(policies.file.policies?.[0]?.limit).toBe(one.status === 200 ? 6 : 7)
  })

  it('change nothing in a dry run, which reports who would be affected', async () => {
    const started = await startAdmin({ store: await emptyStore() })
    const { policies, visit, call, look } = started
    for (let i = 0; i < 4; i += 1) await visit('ada')
    await visit('bob')
    const { version } = policies
    const { body } = await started.change('changes', { ...limitOf(3), dryRun: true })
    expect(body.dryRun).toBe(true)
    expect(body.affected).toMatchObject({ known: true })
    const { digest } = (await look('user ada')).body
    expect(body.affected.policies).toMatchObject([
      { policy: 'burst', newlyDenied: [{ digest, perWindow: 4 }], newlyAllowed: [] },
    ])
    expect(policies.version).toBe(version)
    expect((await call('GET', 'audit')).body.records).toHaveLength(1)
    expect((await started.change('kill', { kill: 'off', dryRun: true })).body).toMatchObject({
      differences: [{ path: 'kill', from: 'none', to: 'off' }],
      affected: { known: false },
    })
    const [target, key] = [{ policy: 'burst', field: 'override' }, { user: 'bob' }]
    await started.change('changes', { set: [{ ...target, value: { key, limit: 9 } }] })
    const remove = [{ ...target, key }]
    expect((await started.change('changes', { remove, dryRun: true })).body).toMatchObject({
      affected: { known: false, why: expect.stringContaining('override') },
    })
    expect((await policies.status()).kill).toBe('none')
  })

  it('are removed: an override of a key that is named key', async () => {
    const file = 'policies: [{ name: burst, limit: 5, window: 1h, key: key }]'
    const started = await startAdmin({ file, store: await emptyStore() })
    const [target, key] = [{ policy: 'burst', field: 'override' }, { key: 'acme' }]
    await started.change('changes', { set: [{ ...target, value: { key, limit: 9 } }] })
    expect(started.policies.state.entries).toHaveLength(1)
    const { status } = await started.change('changes', { remove: [{ ...target, key }] })
    expect([status, started.policies.state.entries]).toEqual([200, []])
  })

  it('reject invalid values, also in a dry run, and list legal ones', async () => {
    const started = await startAdmin({ store: await emptyStore() })
    const wrong = [
      { set: [{ policy: 'burst', field: 'limit', value: -1 }] },
      { set: [{ policy: 'nothing', field: 'limit', value: 1 }] },
      { set: [{ policy: 'burst', field: 'window', value: '1m' }] },
      { set: [{ policy: 'burst', field: 'limit', value: 1, until: '2030-01-01' }] },
      { set: [{ policy: 'burst', field: 'override', value: { key: {}, limit: 1 } }] },
      { set: [{ policy: 'burst', field: 'override', value: { key: { nobody: 'x' }, limit: 1 } }] },
      { remove: [{ policy: 'burst', field: 'limit' }] },
      {},
    ]
    for (const body of wrong) {
      for (const dryRun of [true, false]) {
        const { status, body: answer } = await started.change('changes', { ...body, dryRun })
        expect(status, JSON.stringify([body, answer])).toBe(400)
      }
    }
    expect((await started.policies.status()).entries).toEqual([])
  })

  it('can be reverted, and show their history, differences and text', async () => {
    const started = await startAdmin({ store: await emptyStore() })
    const { call, policies } = started
    const first = policies.version
    const value = { key: { user: 'ada' }, limit: 9 }
    const override = { policy: 'burst', field: 'override', value }
    await started.change('changes', { set: [...limitOf(6).set, override] })
    const second = policies.version
    const { body: shown } = await call('GET', 'policies')
    expect(shown.overrides).toMatchObject([
      { key: { user: 'ada' }, limit: 9, origin: 'change', reason },
      { key: { user: 'vip' }, limit: 50, origin: 'file' },
    ])
    const { body: diff } = await call('GET', `policies/diff?from=${first}&to=${second}`)
    expect(diff.differences.map(({ path }: { path: string }) => path)).toEqual([
      'policies.burst.limit',
      'overrides',
    ])
    expect((await started.change('rollback', { version: first })).status).toBe(200)
    expect(policies.file.policies?.[0]?.limit).toBe(5)
    expect((await started.change('kill', { kill: 'shadow' })).status).toBe(200)
    const { records } = (await call('GET', 'audit')).body
    const override9 = { path: 'overrides', to: [{ policy: 'burst', key: { user: 'vip' } }] }
    expect(records).toMatchObject([
      { action: 'policies.kill', changes: [{ path: 'kill', from: 'none', to: 'shadow' }] },
      {
        ...{ action: 'policies.rollback', actor: 'ada', before: second },
        changes: [{ path: 'policies.burst.limit', from: 6, to: 5 }, override9],
      },
      {
        ...{ action: 'policies.change', target: { version: second }, before: first },
        undone: records[1].target.version,
        changes: [{ path: 'policies.burst.limit', from: 5, to: 6 }, { path: 'overrides' }],
      },
      { action: 'policies.file' },
    ])
    expect(records.at(-1)).not.toHaveProperty('before')
    const { body: text } = await call('GET', `policies/export?version=${second}`)
    expect(text.text).toContain('limit: 6')
    expect((await call('GET', 'policies/export?version=nothing')).status).toBe(400)
  })

  it('show no identity to those who may only read', async () => {
    let granted = everything
    const admin = { authorize: () => granted }
    const started = await startAdmin({ store: await emptyStore(), admin })
    const { call, policies } = started
    const first = policies.version
    const value = { key: { user: 'sk_live_ada' }, limit: 9 }
    await started.change('changes', { set: [{ policy: 'burst', field: 'override', value }] })
    granted = { actor: 'eve', may: ['read'] }
    for (const path of ['policies', `policies/diff?from=${first}`, 'audit']) {
      const { status, body } = await call('GET', path)
      expect(status).toBe(200)
      expect(JSON.stringify(body)).not.toMatch(/sk_live_ada|vip/)
    }
  })

  it('answer 304 while nothing has changed, and never after a change', async () => {
    const { call, policies } = await startAdmin({ store: await emptyStore() })
    const { etag = '' } = await call('GET', 'policies')
    const again = () => call('GET', 'policies', { headers: { 'if-none-match': etag } })
    expect((await again()).status).toBe(304)
    await policies.set({ policy: 'burst', field: 'limit', value: 6 }, { author: 'bob', reason })
    expect((await again()).status).toBe(200)
  })
})

it('the admin API reports missing policies', async () => {
  const { call } = await startAdmin({ admin: { policies: undefined } as never })
  for (const path of ['policies', 'fleet']) {
    expect((await call('GET', path)).status, path).toBe(404)
  }
  const { features } = (await call('GET', 'session')).body
  expect(features).toMatchObject({ policies: false, changes: false, keys: false })
})
