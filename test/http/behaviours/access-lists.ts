import { memoryStore } from '@sluice/core'
import { expect, it, vi } from 'vitest'
import type { Behaviour } from '../../adapters/adapter-conformance.ts'
import { limitFields } from '../../adapters/ask.ts'
import type { NativeRequest } from '../../adapters/drivers/driver.ts'

const user = (name: string) => ({ headers: { 'x-user': name } })
const byUser = (request: NativeRequest) => request.headers['x-user'] as string | undefined
const forwardedFor = (value: string) => ({ headers: { 'x-forwarded-for': value } })

/** Who passes uncounted, and who is refused at once. */
export const accessLists: Behaviour = ({ driver, start, limited }) => {
  it('lets an allowed address pass uncounted, without headers', async () => {
    const app = await limited({ limit: 1, window: '1m', allow: { ips: ['127.0.0.2'] } })
    const allowed = { from: '127.0.0.2' }

    expect(limitFields(await app.ask('/', allowed))).toEqual({})
    expect(await app.statuses(3, '/', allowed)).toEqual([200, 200, 200])
    expect(await app.statuses(2)).toEqual([200, 429])
  })

  it('refuses a blocked address at once, without asking the store', async () => {
    const store = memoryStore()
    const asked = vi.spyOn(store, 'apply')
    const reached = vi.fn()
    const block = { ips: ['127.0.0.2/31'] }
    const onDecision = vi.fn()
    const answers = { statusCode: 420, message: 'slow down', observers: { onDecision } }
    const limits = { limit: 1, window: '1m', store, block, ...answers } as const
    const app = await start({ limits: [limits], routes: [{ path: '/', reached }] })

    const answer = await app.ask('/', { from: '127.0.0.3' })

    expect(answer.status).toBe(403)
    expect(answer.field('content-type')).toBe('application/problem+json')
    expect(answer.field('cache-control')).toBe('no-store')
    expect(answer.body).toBe('{"type":"about:blank","title":"Forbidden","status":403}')
    expect(limitFields(answer)).toEqual({})
    expect(asked).not.toHaveBeenCalled()
    expect(onDecision).toHaveBeenCalledOnce()
    expect(onDecision.mock.calls[0]?.[0]).toMatchObject({
      decision: expect.objectContaining({ allowed: false, outcomes: [] }),
      checks: [],
      policy: undefined,
      key: undefined,
      digest: undefined,
      answeredBy: 'guard',
      method: 'GET',
      request: expect.objectContaining({ method: 'GET' }),
      route: driver.knowsRoutes ? 'GET /' : undefined,
    })
    expect(reached).not.toHaveBeenCalled()
    expect(await app.statuses(2)).toEqual([200, 420])
  })

  it('goes by the address that the framework finds behind a trusted proxy, and by no other', async () => {
    const lists = { allow: { ips: ['10.0.0.0/8'] }, block: { ips: ['198.51.100.0/24'] } }
    const limits = [{ limit: 1, window: '1m', ...lists }] as const
    const app = await start({ limits, trustProxy: '127.0.0.1' })
    const bare = await start({ limits })

    expect(await app.statuses(2, '/', forwardedFor('10.1.2.3'))).toEqual([200, 200])
    expect(await app.statuses(1, '/', forwardedFor('10.1.2.3, 198.51.100.7'))).toEqual([403])
    expect(await app.statuses(1, '/', forwardedFor('::ffff:198.51.100.7'))).toEqual([403])
    const spoofed = { ...forwardedFor('10.1.2.3'), from: '127.0.0.2' }
    if (!driver.trustsAnyPeer) expect(await app.statuses(2, '/', spoofed)).toEqual([200, 429])
    expect(await bare.statuses(2, '/', forwardedFor('10.1.2.3'))).toEqual([200, 429])
  })

  it('lets an allowed key pass, refuses a blocked one, and a key that is both', async () => {
    const app = await limited({
      limit: 1,
      window: '1m',
      key: byUser,
      allow: { keys: ['partner', 'both'], ips: ['127.0.0.2'] },
      block: { keys: ['thief', 'both'] },
    })

    expect(limitFields(await app.ask('/', user('partner')))).toEqual({})
    expect(await app.statuses(3, '/', user('partner'))).toEqual([200, 200, 200])
    expect(await app.statuses(1, '/', user('thief'))).toEqual([403])
    expect(await app.statuses(1, '/', user('both'))).toEqual([403])
    expect(await app.statuses(1, '/', { ...user('thief'), from: '127.0.0.2' })).toEqual([403])
    expect(await app.statuses(2, '/', { ...user('ada'), from: '127.0.0.2' })).toEqual([200, 200])
    expect(await app.statuses(2, '/', user('ada'))).toEqual([200, 429])
  })

  it('has a message that is found, or a handler, tell of it', async () => {
    const block = { ips: ['127.0.0.1'] }
    const found = await limited({ limit: 1, window: '1m', block, message: async () => ({ no: 1 }) })
    const handled = await limited({
      limit: 1,
      window: '1m',
      block,
      reply: ({ allowed, outcomes, retryAfterMs }) =>
        `${allowed} ${outcomes.length} ${retryAfterMs}`,
    })

    const answer = await found.ask()
    expect([answer.status, answer.body]).toEqual([403, '{"no":1}'])
    const replied = await handled.ask()
    expect([replied.status, replied.body]).toEqual([418, 'false 0 Infinity'])
    expect(replied.field('cache-control')).toBe('no-store')
  })

  it('stands on a route too', async () => {
    const limits = { limit: 1, window: '1m' } as const
    const block = { ips: ['127.0.0.1'] }
    const app = await start({
      limits: [{ ...limits, limit: 9, routes: { '/rule': { ...limits, block } } }],
      routes: [{ path: '/' }, { path: '/rule' }, { path: '/own', limits: { ...limits, block } }],
    })

    expect(await app.statuses(1)).toEqual([200])
    expect(await app.statuses(1, '/rule')).toEqual([403])
    expect(await app.statuses(1, '/own')).toEqual([403])
    expect(await app.statuses(1, '/own', { from: '127.0.0.2' })).toEqual([200])
  })
}
