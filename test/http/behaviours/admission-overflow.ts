import { memoryStore } from '@sluice/core'
import { apiKey } from '@sluice/http'
import { createAdmission, createQueue, memoryBroker } from '@sluice/queue'
import { expect, it, vi } from 'vitest'
import type { Behaviour } from '../../adapters/adapter-conformance.ts'
import type { NativeRequest } from '../../adapters/drivers/driver.ts'
import { keyed, post, type QueueingSetup, startQueueing } from '../../adapters/queueing-app.ts'

const minute = { window: '1m' } as const
const overflow = { admit: 'overflow' } as const
const ofSoft = { admit: 'overflow', soft: ['soft'] } as const
const soft = { name: 'soft', limit: 1, ...minute }
const hard = (limit: number) => ({ name: 'hard', limit, ...minute })

/** Requests that are queued since they are over a soft limit. */
export const admissionOverflow: Behaviour = ({ start }) => {
  const queueing = (setup?: QueueingSetup) => startQueueing(start, setup)

  it('queues over a soft limit, refuses over a hard one, which counts queued requests', async () => {
    const policies = [{ ...soft, limit: 2 }, hard(4)]
    const { app, reached, send } = await queueing({ admission: ofSoft, limits: { policies } })
    expect(await app.statuses(6, '/reports', post())).toEqual([200, 200, 202, 202, 429, 429])
    expect(reached).toHaveBeenCalledTimes(2)
    expect(JSON.parse((await send()).body)['violated-policies']).toEqual(['soft', 'hard'])
  })

  it('counts strikes for refusals, not for queued requests; blocked clients are refused', async () => {
    const { app, send, sent } = await queueing({
      queue: { maxDepth: 20, maxDepthPerIdentity: 3 },
      admission: overflow,
      limits: { limit: 1, ...minute, penalty: { after: 2, within: '1h', for: '5m' } },
    })
    const statuses = await app.statuses(6, '/reports', post())
    expect(statuses).toEqual([200, 202, 202, 202, 429, 429])
    vi.setSystemTime(Date.now() + 60_000)
    const blocked = await send()
    expect(blocked.status).toBe(429)
    expect(JSON.parse(blocked.body)).toMatchObject({ title: 'Abnormal Usage Detected' })
    vi.setSystemTime(Date.now() + 240_000)
    expect(await sent(post())).toEqual([200])
  })

  it('counts no strike of the penalty around a route either', async () => {
    const queue = createQueue<NativeRequest>({ broker: memoryBroker(), identity: apiKey() })
    const admission = createAdmission({ queue, monitor: '/jobs', ...overflow })
    const limits = {
      policies: [{ name: 'all', limit: 100, ...minute }],
      penalty: { after: 2, within: '1h', for: '5m' },
      routes: { 'POST /reports': { limit: 1, ...minute, admission } },
    } as const
    const app = await start({ limits: [limits], routes: [{ method: 'POST', path: '/reports' }] })
    expect(await app.statuses(5, '/reports', post())).toEqual([200, 202, 202, 202, 202])
  })

  it.each([
    ['each request', {}],
    ['those that may be retries too', { idempotencyKey: true }],
  ])('notifies observers once of the outcome of a request: %s', async (_what, more) => {
    const onDecision = vi.fn()
    const { sent } = await queueing({
      queue: { maxDepth: 20, maxDepthPerIdentity: 1 },
      admission: ofSoft,
      limits: { policies: [soft, hard(10)], observers: { onDecision }, ...more },
    })
    expect(await sent(keyed('"0"'), keyed('"1"'), keyed('"2"'))).toEqual([200, 202, 429])
    const told = onDecision.mock.calls.map(([{ decision }]) => decision.allowed)
    expect(told).toEqual([true, true, false])
    expect(onDecision.mock.calls[1]?.[0].checks).toMatchObject([{ policy: { name: 'hard' } }])
  })

  it('refuses what a hard limit no longer allows on the second check, and reports it once', async () => {
    const onDecision = vi.fn()
    const memory = memoryStore()
    const { sent } = await queueing({
      admission: ofSoft,
      limits: {
        // Somebody else takes the last unit of the hard limit in between.
        store: {
          ...memory,
          apply(op, checks) {
            const [first] = checks
            const isHardAlone = op === 'consume' && checks.length === 1
            if (isHardAlone && first) memory.apply('charge', [{ ...first, cost: 5 }])
            return memory.apply(op, checks)
          },
        },
        policies: [soft, hard(5)],
        observers: { onDecision },
      },
    })
    expect(await sent(post(), post())).toEqual([200, 429])
    expect(onDecision.mock.calls.map(([{ decision }]) => decision.allowed)).toEqual([true, false])
  })

  it('rejects a penalty in soft', async () => {
    const penalty = { after: 2, within: '1m', for: '5m' } as const
    const admission = { ...overflow, soft: ['soft', 'penalty'] }
    const starting = queueing({ admission, limits: { policies: [soft], penalty } })
    await expect(starting).rejects.toThrow(/soft must be names of policies that are limits/)
  })

  it('does not confuse policies in shadow with those that are enforced', async () => {
    const trial = { name: 'trial', limit: 0, ...minute, mode: 'shadow' } as const
    const policies = [trial, soft, hard(2)]
    const { app } = await queueing({ admission: ofSoft, limits: { policies } })
    expect(await app.statuses(4, '/reports', post())).toEqual([200, 202, 429, 429])
  })

  it('refuses over a soft limit while the queue is full, with the longer wait', async () => {
    const limits = { limit: 1, window: '2s' } as const
    const { send, sent } = await queueing({ queue: { maxDepth: 1 }, admission: overflow, limits })
    expect(await sent(post(), post())).toEqual([200, 202])
    const refused = await send()
    expect([refused.status, refused.field('retry-after')]).toEqual([429, '5'])
  })
}
