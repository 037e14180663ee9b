import { memoryStore } from '@sluice/core'
import { rateLimit, tenant } from '@sluice/express'
import { openPolicies } from '@sluice/policies'
import type { Request } from 'express'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { burst, expressOf, note, openInTest, pollOften } from './live-policies.ts'
import { policyFolder } from './policy-folder.ts'

pollOften()

const tenantKey = tenant((req: Request) => req.get('x-tenant'))
const plan = (req: Request) => req.get('x-plan')

async function app(text: string) {
  const opened = await openInTest(text)
  return { ...opened, ask: expressOf(opened, { keys: { tenant: tenantKey }, values: { plan } }) }
}

describe('openPolicies', () => {
  it('decides by the file and its successor: a new limit keeps the count, a new window restarts it', async () => {
    const { change, policies, ask } = await app(burst(2))
    expect([await ask(), await ask(), await ask()]).toEqual([200, 200, 429])
    await change(burst(3))
    expect([await ask(), await ask()]).toEqual([200, 429])
    const before = policies.version
    await change(burst(3).replace('1h', '2h'))
    expect(await ask()).toBe(200)
    const window = { path: 'policies.burst.window', from: '1h', to: '2h', newCount: true }
    expect(await policies.diff(before)).toEqual([window])
  })

  it('reads the fields of earlier releases, with one warning for each', async () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    const removed = { githubExtras: true, idempotentRetries: 5 }
    const policies = [{ name: 'burst', limit: 1, window: '1h' }]
    const own = [{ name: 'own', limit: 9, window: '1h' }]
    const routes = { '/r': { idempotentRetries: 1, policies: own } }
    const { ask } = await app(JSON.stringify({ ...removed, policies, routes }))
    expect([await ask(), await ask(), await ask({}, '/r')]).toEqual([200, 429, 200])
    const warned = warn.mock.calls.map(([text]) => /has (\w+), which is ignored/.exec(text)?.[1])
    expect(warned.filter(Boolean).sort()).toEqual(Object.keys(removed))
  })

  it('limits by tier, and has overrides for identities and patterns', async () => {
    const { ask } = await app(`
policies:
  - { name: sustained, limit: { tiers: { pro: 2 }, by: plan, default: 1 }, window: 1h, key: tenant }
overrides:
  - { policy: sustained, key: { tenant: 'a*' }, limit: 3 }
  - { policy: sustained, key: { tenant: 'acme-*' }, limit: 4 }
  - { policy: sustained, key: { tenant: acme-eu }, limit: 0 }
  - { policy: sustained, key: { tenant: free }, mode: shadow }
`)
    const passed = async (headers: Record<string, string>) => {
      let count = 0
      while (count < 6 && (await ask(headers)) === 200) count += 1
      return count
    }
    expect(await passed({ 'x-tenant': 'b' })).toBe(1)
    expect(await passed({ 'x-tenant': 'c', 'x-plan': 'pro' })).toBe(2)
    expect(await passed({ 'x-tenant': 'abc' })).toBe(3)
    expect(await passed({ 'x-tenant': 'acme-us' })).toBe(4)
    expect(await passed({ 'x-tenant': 'acme-eu' })).toBe(0)
    expect(await passed({ 'x-tenant': 'free' })).toBe(6)
  })

  it('has routes', async () => {
    const { ask } = await app(`
policies: [{ name: burst, limit: 3, window: 1h }]
routes:
  GET /login: { policies: [{ name: login, limit: 1, window: 15m }], combine: add }
  /health: false
`)
    expect([await ask({}, '/login'), await ask({}, '/login')]).toEqual([200, 429])
    expect([await ask(), await ask(), await ask()]).toEqual([200, 200, 429])
    expect(await ask({}, '/health')).toBe(200)
  })

  it('takes an author and a reason that people can read, and nothing else', async () => {
    const { policies } = await app(burst(1))
    const entry = { policy: 'burst', field: 'limit', value: 5 } as const
    const wrong = ['', ' ', '\u200b\u200d', '\u3164', '\u202eticket', 'two\nlines', 'x'.repeat(501)]
    for (const text of wrong) {
      for (const field of ['author', 'reason'] as const) {
        const set = policies.set(entry, { ...note, [field]: text })
        await expect(set, JSON.stringify(text)).rejects.toThrow(`${field} must be one line of 1 to`)
      }
      const set = policies.set({ ...entry, reason: text }, note)
      await expect(set, JSON.stringify(text)).rejects.toThrow('entry.reason must be one line of')
    }
    const family = '\u{1f468}\u200d\u{1f469}\u200d\u{1f467} می\u200cخواهم'
    await policies.set({ ...entry, reason: family }, { author: 'عدا', reason: family })
    expect((await policies.history())[0]?.reason).toBe(family)
  })

  it('changes a limit at run time, lists what hides a newer value of the file, and removes it', async () => {
    const { change, policies, ask } = await app(burst(7))
    const entry = { policy: 'burst', field: 'limit' } as const
    await policies.set({ ...entry, value: 1 }, note)
    expect([await ask(), await ask()]).toEqual([200, 429])
    await change(burst(2))
    const { entries } = await policies.status()
    expect(entries).toEqual([{ ...entry, value: 1, hides: 2 }])
    expect(await policies.export()).toContain('limit: 1')
    await policies.remove(entry, note)
    expect([await ask(), await ask()]).toEqual([200, 429])
  })

  it.each<[value: number | string | object, message: string]>([
    [-40, 'entry.value must be a whole number ≥ 0'],
    [{ tiers: { pro: 1 }, by: 'plan' }, 'entry.value needs default: '],
    [{ tiers: { pro: -1 }, by: 'plan', default: 1 }, 'entry.value.tiers.pro must be '],
    [{ tierz: {} }, "entry.value: there is no option 'tierz'"],
  ])('names the value of an entry that is wrong: %j', async (value, message) => {
    const { policies } = await app(burst(1))
    const entry: object = { policy: 'burst', field: 'limit', value }
    const set = Promise.resolve().then(() => Reflect.apply(policies.set, policies, [entry, note]))
    await expect(set).rejects.toThrow(message)
  })

  it('rejects names missing from the code, and options that belong in the file', async () => {
    const policy = '{ name: a, limit: { by: size, default: 1 }, window: 1s, key: device }'
    const file = await policyFolder(`policies: [${policy}]`)
    const store = memoryStore()
    const policies = await openPolicies({ file, store })
    onTestFinished(() => policies.close())
    expect(() => rateLimit({ policies, store })).toThrow("name a value 'size'")
    const [device, size] = [() => 'd', () => 3]
    expect(() => rateLimit({ policies, store, keys: { device } })).toThrow("name a value 'size'")
    expect(() => rateLimit({ policies, store, values: { size } })).toThrow("name a key 'device'")
    const options = { policies, store, keys: { device }, values: { size } }
    expect(() => rateLimit(options)).not.toThrow()
    const promised = openPolicies({ file })
    const awaited = 'policies is a promise; write policies: await openPolicies('
    expect(() => Reflect.apply(rateLimit, undefined, [{ policies: promised }])).toThrow(awaited)
    onTestFinished(async () => (await promised).close())
    for (const field of ['limit', 'window', 'routes', 'profiles']) {
      expect(() => rateLimit({ ...options, [field]: 1 })).toThrow(
        `${field} cannot be set next to policies`,
      )
    }
  })

  it.each([
    [{ file: '' }, 'file must be the path of a policy file'],
    [{ name: 'a b' }, 'name must be 1 to 64 letters'],
    [{ store: { name: 'own' } }, 'store must be a store that keeps documents'],
    [{ observers: { onRefused: 1 } }, 'observers.onRefused must be a function'],
    [{ onVersions: 1 }, 'there is no option'],
  ])('refuses %j', async (wrong, message) => {
    const opening = Reflect.apply(openPolicies, undefined, [{ file: 'sluice.yaml', ...wrong }])
    await expect(opening).rejects.toThrow(message)
  })
})
