import type { DecisionEvent, Observers, SkipEvent } from '@sluice/http'
import { describe, expect, it, vi } from 'vitest'
import { exchange, guardOf } from './exchange.ts'

function listening() {
  const decisions: DecisionEvent[] = []
  const skips: SkipEvent[] = []
  const observer: Observers = {
    onDecision: (event) => void decisions.push(event),
    onSkip: (event) => void skips.push(event),
  }
  return { decisions, skips, observers: [observer] }
}

describe('observers of a guard', () => {
  it('are told once of each request, with its method, route, policy and what stands for its key', async () => {
    const { decisions, skips, observers } = listening()
    const guard = guardOf({ name: 'all', limit: 1, window: '1m', observers })
    for (let i = 0; i < 2; i += 1) {
      await guard.check(exchange({ method: 'POST', route: '/items/:id' }))
    }
    expect(decisions).toHaveLength(2)
    expect(decisions[1]).toMatchObject({
      method: 'POST',
      route: 'POST /items/:id',
      policy: { name: 'all' },
      answeredBy: 'memory',
      isQueued: false,
    })
    expect(decisions[1]?.digest).toMatch(/^[\w-]{22}$/)
    expect(skips).toEqual([])
  })

  it('are told by the guard of a route too, and once of the limiter of each', () => {
    const onLimiter = vi.fn()
    const { decisions, observers } = listening()
    const guard = guardOf({
      ...{ limit: 1, window: '1m', observers: [...observers, { onLimiter }] },
      routes: { '/login': { name: 'login', limit: 1, window: '1m' } },
    })
    guard.check(exchange({ path: '/login' }))
    expect(decisions[0]).toMatchObject({ route: '/login', policy: { name: 'login' } })
    expect(onLimiter.mock.calls.map(([{ policies }]) => policies[0].name)).toEqual([
      'default',
      'login',
    ])
  })

  const preflight = {
    method: 'OPTIONS',
    header: (name: string) =>
      ({ origin: 'https://a.example', 'access-control-request-method': 'PUT' })[name],
  }

  const keyless = { key: (): undefined => undefined, onMissingKey: 'skip' } as const
  const allow = { ips: ['203.0.113.0/24'] }

  it.each([
    ['skip', { skip: () => true }, {}],
    ['allow', { allow }, {}],
    ['allow', { key: (): string => 'a', allow: { keys: ['a'] } }, {}],
    ['allow', { ...keyless, allow, block: { keys: ['bad'] } }, {}],
    ['preflight', { preflights: 'pass' }, preflight],
    ['route', { routes: { '/health': false } }, { path: '/health' }],
    ['no-key', keyless, {}],
    ['no-key', { ...keyless, allow: { ips: ['10.0.0.0/8'] } }, {}],
    ['no-key', { ...keyless, block: { keys: ['bad'] } }, {}],
  ] as const)('are told of a request that passes uncounted: %s', async (reason, options, view) => {
    const { decisions, skips, observers } = listening()
    const guard = guardOf({ limit: 1, window: '1m', observers, ...options })
    await guard.check(exchange(view))
    expect(skips).toMatchObject([{ reason, method: 'method' in view ? view.method : 'GET' }])
    expect(decisions).toEqual([])
  })

  it('are told of no policy where the failure mode answers, and neither is the handler', async () => {
    const { decisions, observers } = listening()
    const store = { apply: () => Promise.reject(new Error('gone')) }
    const options = {
      failureMode: 'closed',
      store,
      observers,
      onStoreError: () => undefined,
    } as const
    const guard = guardOf({ name: 'api', limit: 1, window: '1m', ...options })
    const { decision } = await guard.check(exchange())
    expect(decision).toMatchObject({ allowed: false, policy: undefined, key: undefined })
    expect(decisions).toMatchObject([{ policy: undefined, key: undefined, digest: undefined }])
  })

  it('may throw without hurting the request', async () => {
    const broken = {
      onSkip: () => {
        throw new Error('broken')
      },
    }
    const guard = guardOf({ limit: 1, window: '1m', skip: () => true, observers: [broken] })
    const passage = await guard.check(exchange())
    expect(passage.verdict.action).toBe('pass')
  })
})
