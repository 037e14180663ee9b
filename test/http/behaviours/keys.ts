import { all, ip } from '@sluice/http'
import { expect, it, vi } from 'vitest'
import type { Behaviour } from '../../adapters/adapter-conformance.ts'
import { limitFields } from '../../adapters/ask.ts'
import type { NativeRequest } from '../../adapters/drivers/driver.ts'

const user = (name: string) => ({ headers: { 'x-user': name } })
const byUser = (request: NativeRequest) => request.headers['x-user'] as string | undefined

/** Who is counted. */
export const keys: Behaviour = ({ start, limited }) => {
  it('calls a key function once a request, though several policies use it', async () => {
    const key = vi.fn(byUser)
    const policies = [
      { name: 'a', limit: 5, window: '1m' },
      { name: 'b', limit: 5, window: '1h' },
    ] as const
    const app = await limited({ key, policies })
    await app.ask('/', user('ada'))

    expect(key).toHaveBeenCalledTimes(1)
  })

  const nameOf = (request: NativeRequest) => (Reflect.get(request, 'user') as { name: string }).name
  it.each([
    ['key', { key: nameOf }],
    ['key', { key: async (request: NativeRequest) => nameOf(request) }],
    ['limit', { limit: (request: NativeRequest) => nameOf(request).length, defaultLimit: 1 }],
    ['cost', { limit: 1, cost: async (request: NativeRequest) => nameOf(request).length }],
    ['enforce', { limit: 1, enforce: (request: NativeRequest) => nameOf(request) !== '' }],
  ])('a mistake in a function is told with its place: %s', async (option, own) => {
    const onError = vi.fn()
    const policy = { name: 'account', limit: 1, window: '1m', ...own } as const
    const app = await start({ limits: [{ policies: [policy] }], onError })

    expect((await app.ask()).status).toBe(500)
    const error: unknown = onError.mock.calls[0]?.[0]
    expect(error).toMatchObject({ name: 'TypeError', cause: { name: 'TypeError' } })
    const place = new RegExp(`^${option} of 'account' in \\w+: Cannot read properties of undefined`)
    expect(error).toHaveProperty('message', expect.stringMatching(place))
  })

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
    const limits = [{ limit: 1, window: '1m', key: byUser, onMissingKey: 'error' }] as const
    const app = await start({ limits, onError })

    expect((await app.ask()).status).toBe(500)
    expect(onError).toHaveBeenCalledWith(expect.objectContaining({ code: 'SLUICE_KEY_MISSING' }))
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
}

function _raise(message: string): never {
  throw new Error(message)
}
