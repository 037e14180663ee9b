import type { Decision } from '@sluice/core'
import type { DecisionEvent, RequestDecision } from '@sluice/http'
import { expect, it } from 'vitest'
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
export const logging: Behaviour = ({ start }) => {
  it('passes the request, its route, the policy and the key to observers', async () => {
    const lines: (string | undefined)[][] = []
    const onDecision = (event: DecisionEvent<NativeRequest>) => {
      const { decision, request, route, policy, key: found } = event
      if (!decision.allowed) lines.push([request && sentPath(request), route, policy?.name, found])
    }
    const policies = [
      { limit: 1, window: '1s' },
      { name: 'minute', limit: 1, window: '1m' },
    ] as const
    const limits = { policies, key, observers: { onDecision } }
    const app = await start({ routes: [{ path: '/items/:id', limits }] })
    await app.statuses(2, '/items/7?full', ada)

    expect(lines).toEqual([['/items/7?full', 'GET /items/:id', 'minute', 'ada']])
  })

  it('shows policy and key to a handler, a message function and later middleware', async () => {
    const seen: unknown[] = []
    const reply = (decision: (Decision & Partial<RequestDecision>) | undefined) => {
      seen.push([decision?.policy?.name, decision?.key])
      return 'no'
    }
    const message: Limits['message'] = (request, decision) => sentPath(request) + reply(decision)
    for (const own of [{ reply }, { message }]) {
      const reached = ({ rateLimit }: LimitedRequest) => void reply(rateLimit)
      const limits = [{ limit: 1, window: '1m', key, ...own } as const]
      const app = await start({ limits, routes: [{ path: '/', reached }] })
      await app.ask('/', ada)
      expect((await app.ask('/', ada)).body).toBe('message' in own ? '/no' : 'no')
    }

    expect(seen).toEqual(Array(4).fill(['default', 'ada']))
  })
}
