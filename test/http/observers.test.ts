import { memoryStore } from '@sluice/core'
import type { DecisionEvent, GuardFields, Observers, SkipEvent } from '@sluice/http'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { goneStore } from '../support/store-through.ts'
import { exchange, guardOf, now } from './exchange.ts'

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
  it("are notified by a route's guard too, and once of each limiter", () => {
    const onLimiter = vi.fn()
    const { decisions, observers } = listening()
    const guard = guardOf({
      ...{ limit: 1, window: '1m', observers: [...observers, { onLimiter }] },
      routes: { '/login': { name: 'login', limit: 1, window: '1m' } },
    })
    guard.check(exchange({ path: '/login' }))
    expect(decisions[0]).toMatchObject({ route: '/login', policy: { name: 'login' } })
    const names = onLimiter.mock.calls.map(([{ policies }]) => policies[0].name)
    expect(names).toEqual(['default', 'login'])
  })

  it('receive the policy that X-RateLimit describes', () => {
    const algorithm = fc.constantFrom('sliding-log', 'fixed-window', 'token-bucket')
    const limits = { limit: fc.integer({ min: 1, max: 9 }), cost: fc.integer({ min: 0, max: 4 }) }
    const policy = fc.record({ ...limits, algorithm, window: fc.constantFrom('1s', '5s', '1m') })
    const policies = fc.array(policy, { minLength: 1, maxLength: 3 })
    const requests = fc.array(fc.nat(2_000), { minLength: 1, maxLength: 12 })
    vi.useFakeTimers({ toFake: ['Date'] })
    const law = fc.property(policies, requests, (drawn, steps) => {
      const { decisions, observers } = listening()
      const guard = guardOf({
        policies: drawn.map((fields, index) => ({ name: `p${index}`, ...fields })),
        penalty: { after: 2, within: '1m', for: '1s' },
        headers: ['legacy-github'],
        observers,
      })
      for (const ms of steps) {
        vi.advanceTimersByTime(ms)
        const { decision, verdict } = now(guard.check(exchange()))
        const policy = decisions.at(-1)?.policy
        if (policy?.algorithm === 'penalty') continue
        expect(verdict.fields).toContainEqual(['X-RateLimit-Resource', policy?.name])
        expect(verdict.fields).toContainEqual(['X-RateLimit-Limit', `${decision?.limit}`])
        if (!decision?.allowed) continue
        expect(verdict.fields).toContainEqual(['X-RateLimit-Remaining', `${decision.remaining}`])
      }
    })
    fc.assert(law)
    vi.useRealTimers()
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
  ] as const)('are notified of an uncounted request: %s', async (reason, options, view) => {
    const { decisions, skips, observers } = listening()
    const guard = guardOf({ limit: 1, window: '1m', observers, ...options })
    await guard.check(exchange(view))
    expect(skips).toMatchObject([{ reason, method: 'method' in view ? view.method : 'GET' }])
    expect(decisions).toEqual([])
  })

  it.each([
    ['has no key', { ...keyless, onMissingKey: 'deny' }, undefined],
    ['goes over its limit', { limit: 0, key: (): string => 'ada' }, 'ada'],
  ] as const)('are notified once of a request that %s', async (_, options, found) => {
    const { decisions, observers } = listening()
    const guard = guardOf({ limit: 9, window: '1m', observers, ...options })
    const { native } = exchange()
    await guard.check({ ...exchange(), native })
    expect(decisions).toHaveLength(1)
    const policy = found && expect.objectContaining({ name: 'default' })
    expect(decisions).toMatchObject([{ decision: { allowed: false }, key: found, policy }])
    expect(decisions[0]?.request).toBe(native)
  })

  it('receive no policy if the failure mode answers, and neither does the handler', async () => {
    const { decisions, observers } = listening()
    const store = goneStore(memoryStore())
    const all = [...observers, { onStoreError: () => undefined }]
    const options = { failureMode: 'closed', store, observers: all } as const
    const guard = guardOf({ name: 'api', limit: 1, window: '1m', ...options })
    const { decision } = await guard.check(exchange())
    expect(decision).toMatchObject({ allowed: false, policy: undefined, key: undefined })
    expect(decisions).toMatchObject([{ policy: undefined, key: undefined, digest: undefined }])
  })

  it('are notified of a limiter once, although retries are free', () => {
    const observers = [{ onLimiter: vi.fn() }, { onLimiter: vi.fn() }]
    guardOf({ limit: 1, window: '1m', idempotencyKey: true, observers })
    for (const { onLimiter } of observers) expect(onLimiter).toHaveBeenCalledOnce()
  })

  it.each([
    ['GET', 'GET /all'],
    ['MKCALENDAR', 'OTHER /all'],
    ['MADE-UP', 'OTHER /all'],
  ])('receive the method %s on a route for all methods as %s', async (method, route) => {
    const { decisions, observers } = listening()
    const guard = guardOf({ limit: 1, window: '1m', observers })
    await guard.check(exchange({ method, route: '/all' }))
    expect(decisions).toMatchObject([{ method, route }])
  })
})

describe('observers of a guard with an admission', () => {
  type Admission = NonNullable<GuardFields<object>['admission']>
  const body = { text: '', contentType: 'text/plain' }
  const answer = { status: 202, fields: [], body } as const

  function admitting(admission: Partial<Admission>, limit = 1) {
    const { decisions, observers } = listening()
    const taking = { overflows: true, takes: () => true, take: () => answer, varies: () => false }
    const policies = [{ name: 'soft', limit, window: '1m' }] as const
    const guard = guardOf({ policies, admission: { ...taking, ...admission }, observers })
    return { decisions, guard }
  }
  const failing = () => Promise.reject(new Error('no broker'))

  it.each([
    ['was taken', { isNew: true }, true],
    ['was taken before', { isKnown: true }, true],
    ['found no room', { givesBack: true, fullForMs: 1_000 }, false],
    ['was wrong', {}, false],
  ])('are notified that a request is queued when it %s', async (_case, taken, isQueued) => {
    const { decisions, guard } = admitting({ take: () => ({ ...answer, ...taken }) })
    await guard.check(exchange())
    expect(decisions).toMatchObject([{ isQueued, answeredBy: 'memory' }])
  })

  it.each([
    ['takes fails', { takes: failing }],
    ['take fails', { take: failing }],
  ])('are notified of a request, allowed or denied, although %s', async (_case, admission) => {
    const { decisions, guard } = admitting(admission)
    for (let i = 0; i < 2; i += 1)
      await expect(guard.check(exchange())).rejects.toThrow('no broker')
    expect(decisions).toMatchObject([{ isQueued: false }, { isQueued: false }])
  })

  it('receive the decision time of a request queued over a limit', async () => {
    const { decisions, guard } = admitting({ take: () => ({ ...answer, isNew: true }) }, 0)
    await guard.check(exchange())
    expect(decisions).toMatchObject([{ isQueued: true }])
    expect(decisions[0]?.durationMs).toBeGreaterThan(0)
  })

  it.each([
    ['an admission', { overflows: false, takes: () => false, take: () => answer }],
    ['none', undefined],
  ])(
    'are notified once of a request without room to wait, as shed, with %s',
    async (_case, admission) => {
      const { decisions, observers } = listening()
      const bucket = { algorithm: 'leaky-bucket', limit: 1, window: '1m', maxDelay: '5m' } as const
      const whole = admission && { admission: { ...admission, varies: () => false } }
      const guard = guardOf({ ...bucket, maxWaiting: 0, ...whole, observers })
      await guard.check(exchange())
      const { verdict } = await guard.check(exchange())
      expect(verdict).toMatchObject({ action: 'reject', status: 503 })
      expect(decisions.map(({ decision }) => decision.source)).toEqual(['store', 'shed'])
      expect(decisions[1]).toMatchObject({ answeredBy: 'shed', decision: { allowed: false } })
    },
  )
})
