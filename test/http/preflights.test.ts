import { createLimiter, memoryStore } from '@sluice/core'
import { type GuardFields, ip } from '@sluice/http'
import { describe, expect, it, vi } from 'vitest'
import { repeated } from '../support/in-turn.ts'
import { exchange, guardOf } from './exchange.ts'

const asksCors = { origin: 'https://a.example', 'access-control-request-method': 'POST' }
const reading = (headers: Readonly<Record<string, string>>) => (name: string) => headers[name]
const preflight = { method: 'OPTIONS', header: reading(asksCors) }
const one = { limit: 1, window: '1m' } as const

/** What becomes of three preflights in a row. */
async function treatment(options: GuardFields<object>, more: object = {}): Promise<string> {
  const guard = guardOf({ preflights: 'pass', ...options })
  const check = async () => (await guard.check(exchange({ ...preflight, ...more }))).verdict.action
  const actions = await repeated(3, check)
  return [...new Set(actions)].join()
}

const noKey = (): undefined => undefined
const ada = (): string => 'ada'
const allow = { ips: ['203.0.113.9'] }

describe("preflights: 'pass'", () => {
  it.each<[string, GuardFields<object>]>([
    ['a limit', one],
    ['a limit on requests in flight', { algorithm: 'concurrency', limit: 1 }],
    ['a cost above the limit', { ...one, cost: 7 }],
    ['a missing key that refuses others', { ...one, key: noKey, onMissingKey: 'deny' }],
    ['a missing key that is an error for others', { ...one, key: noKey, onMissingKey: 'error' }],
    ['a list of other keys', { ...one, key: ada, block: { keys: ['eve'] } }],
  ])('lets them past %s', async (_what, options) => {
    expect(await treatment(options)).toBe('pass')
    expect(await treatment({ ...options, penalty: { after: 'never' } })).toBe('pass')
  })

  it.each([{}, { origin: 'https://a.example' }, { 'access-control-request-method': 'POST' }])(
    'counts OPTIONS with no more than %o',
    async (headers) => {
      expect(await treatment(one, { header: reading(headers) })).toBe('pass,reject')
    },
  )

  it('applies to routes without their own setting', async () => {
    const routes = { '/a': one, '/b': { ...one, preflights: 'count' } } as const
    expect(await treatment({ routes }, { path: '/a' })).toBe('pass')
    expect(await treatment({ routes }, { path: '/b' })).toBe('pass,reject')
  })

  it.each<[string, GuardFields<object>]>([
    ['a key', { key: ada, block: { keys: ['ada'] } }],
    ['a key, with an address that is allowed', { key: ada, allow, block: { keys: ['ada'] } }],
    ['an address that is allowed too', { allow, block: allow }],
  ])('refuses clients with %s on a block list', async (_what, options) => {
    expect(await treatment({ ...one, ...options })).toBe('reject')
  })

  it.each<GuardFields<object>>([
    {},
    { key: noKey },
    { key: noKey, onMissingKey: 'deny' },
    { key: noKey, onMissingKey: 'error' },
    { key: ada, cost: 7 },
  ])('refuses clients whose address is blocked by a penalty: %o', async (options) => {
    const onDecision = vi.fn()
    const store = memoryStore()
    const ban = { name: 'ban', after: 'never' } as const
    const limiter = createLimiter({ ...one, store, penalty: ban })
    await limiter.block('@ip/203.0.113.9', '1m')
    const penalty = { ...ban, key: ip() }
    const guarded = { ...one, ...options, store, penalty, observers: { onDecision } }
    expect(await treatment(guarded)).toBe('reject')
    expect(onDecision).toHaveBeenCalledTimes(3)
    await limiter.unblock('@ip/203.0.113.9')
    expect(await treatment(guarded)).toBe('pass')
  })

  it('calls no function if neither a penalty nor a list needs a key', async () => {
    const asked = vi.fn(ada)
    await treatment({ ...one, key: asked, block: { ips: ['10.0.0.1'] } })
    expect(asked).not.toHaveBeenCalled()
  })
})
