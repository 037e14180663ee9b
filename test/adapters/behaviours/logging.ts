import type { Decision } from '@sluice/core'
import type { DecisionEvent, RequestDecision, ShadowEvent } from '@sluice/http'
import { expect, it, vi } from 'vitest'
import type { Behaviour } from '../adapter-conformance.ts'
import {
  type LimitedRequest,
  type Limits,
  type NativeRequest,
  sentPath,
} from '../drivers/driver.ts'

const key = (request: NativeRequest) => request.headers['x-user'] as string | undefined
const ada = { headers: { 'x-user': 'ada' } }

/** What can be written to a log when a request is refused. */
export const logging: Behaviour = ({ driver, start, limited }) => {
  /** Every denial as a line of a log. */
  function logged() {
    const lines: (string | undefined)[][] = []
    const onDecision = (event: DecisionEvent<NativeRequest>) => {
      const { decision, request, route, policy, key: found } = event
      if (!decision.allowed) lines.push([request && sentPath(request), route, policy?.name, found])
    }
    return { lines, observers: { onDecision } }
  }

  it('tells an observer the request, its route, the policy and the key', async () => {
    const { lines, observers } = logged()
    const policies = [
      { limit: 1, window: '1s' },
      { name: 'minute', limit: 1, window: '1m' },
    ] as const
    const app = await start({
      routes: [{ path: '/items/:id', limits: { policies, key, observers } }],
    })
    await app.statuses(2, '/items/7?full', ada)

    expect(lines).toEqual([['/items/7?full', 'GET /items/:id', 'minute', 'ada']])
  })

  it.skipIf(driver.answersUnknown)(
    'tells an observer the rule, where no route is matched',
    async () => {
      const { lines, observers } = logged()
      const routes = { '/nowhere/*': { limit: 1, window: '1m' } } as const
      const app = await limited({ limit: 9, window: '1m', key, observers, routes })
      await app.statuses(2, '/nowhere/1', ada)

      expect(lines).toEqual([['/nowhere/1', '/nowhere/*', 'default', 'ada']])
    },
  )

  it.each<[string, Limits, string | undefined]>([
    ['has no key', { limit: 9, window: '1m', key, onMissingKey: 'deny' }, undefined],
    ['a list blocks', { limit: 9, window: '1m', block: { ips: ['127.0.0.1'] } }, undefined],
    ['goes over its limit', { limit: 0, window: '1m', key: () => 'ada' }, 'ada'],
  ])('tells an observer once of a request that %s', async (_, limits, found) => {
    const { lines, observers } = logged()
    const app = await limited({ ...limits, observers })
    await app.ask('/', {})

    const route = driver.knowsRoutes ? 'GET /' : undefined
    expect(lines).toEqual([['/', route, found && 'default', found]])
  })

  it('tells an observer of policies in shadow the request too', async () => {
    const onShadow = vi.fn<(event: ShadowEvent<NativeRequest>) => void>()
    const app = await limited({
      limit: 0,
      window: '1m',
      mode: 'shadow',
      key,
      observers: { onShadow },
    })
    await app.ask('/', ada)

    const told = onShadow.mock.calls[0]?.[0]
    expect(told?.request && sentPath(told.request)).toBe('/')
    expect([told?.outcomes[0]?.allowed, told?.checks[0]?.identity]).toEqual([false, 'ada'])
  })

  it('tells a handler, a message function and what comes after the policy and the key', async () => {
    const seen: unknown[] = []
    const reply = (decision: (Decision & Partial<RequestDecision>) | undefined) => {
      seen.push([decision?.policy?.name, decision?.key])
      return 'no'
    }
    const limits = { limit: 1, window: '1m', key } as const
    const message: Limits['message'] = (_, decision) => reply(decision)
    for (const options of [
      { ...limits, reply },
      { ...limits, message },
    ]) {
      const reached = ({ rateLimit }: LimitedRequest) => void reply(rateLimit)
      const app = await start({ limits: [options], routes: [{ path: '/', reached }] })
      await app.statuses(2, '/', ada)
    }

    expect(seen).toEqual(Array(4).fill(['default', 'ada']))
  })

  it('keeps keys out of what is made of a decision as JSON', async () => {
    const reached = vi.fn((request: LimitedRequest) => JSON.stringify(request.rateLimit))
    const limits = [{ limit: 1, window: '1m', key }] as const
    const app = await start({ limits, routes: [{ path: '/', reached }] })
    await app.ask('/', ada)

    expect(reached.mock.results[0]?.value).toContain('"allowed":true')
    expect(reached.mock.results[0]?.value).not.toContain('ada')
  })
}
