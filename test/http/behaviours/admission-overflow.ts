import { memoryStore } from '@sluice/core'
import { apiKey } from '@sluice/http'
import { createAdmission, createQueue, memoryBroker } from '@sluice/queue'
import { expect, it, vi } from 'vitest'
import type { Behaviour } from '../../adapters/adapter-conformance.ts'
import type { NativeRequest } from '../../adapters/drivers/driver.ts'
import { keyed, post, type QueueingSetup, startQueueing } from '../../adapters/queueing-app.ts'

/** Requests that are queued since they are over a soft limit. */
export const admissionOverflow: Behaviour = ({ start }) => {
  const queueing = (setup?: QueueingSetup) => startQueueing(start, setup)

  it('queues what is over a soft limit, and refuses what is over a hard one, which counts what is queued', async () => {
    const store = memoryStore()
    const { app, reached } = await queueing({
      admission: { admit: 'overflow', soft: ['soft'] },
      limits: {
        store,
        policies: [
          { name: 'soft', limit: 2, window: '1m' },
          { name: 'hard', limit: 4, window: '1m' },
        ],
      },
    })
    expect(await app.statuses(6, '/reports', post())).toEqual([200, 200, 202, 202, 429, 429])
    expect(reached).toHaveBeenCalledTimes(2)
    const refused = await app.ask('/reports', post())
    expect(JSON.parse(refused.body)['violated-policies']).toEqual(['soft', 'hard'])
  })

  it('counts no strike for what is queued, and one for each refusal; whom a penalty blocks is refused', async () => {
    const { app } = await queueing({
      queue: { maxDepth: 20, maxDepthPerIdentity: 3 },
      admission: { admit: 'overflow' },
      limits: { limit: 1, window: '1m', penalty: { after: 2, within: '1h', for: '5m' } },
    })
    expect(await app.statuses(4, '/reports', post())).toEqual([200, 202, 202, 202])
    expect(await app.statuses(2, '/reports', post())).toEqual([429, 429])
    vi.setSystemTime(Date.now() + 60_000)
    const blocked = await app.ask('/reports', post())
    expect(blocked.status).toBe(429)
    expect(JSON.parse(blocked.body)).toMatchObject({ title: 'Abnormal Usage Detected' })
    vi.setSystemTime(Date.now() + 240_000)
    expect((await app.ask('/reports', post())).status).toBe(200)
  })

  it('refuses, over a limit, what is wrong, and each is a strike; what was queued before is none', async () => {
    const { app } = await queueing({
      admission: { admit: 'overflow' },
      limits: { limit: 1, window: '1m', penalty: { after: 4, within: '1h', for: '5m' } },
    })
    expect((await app.ask('/reports', post())).status).toBe(200)
    expect((await app.ask('/reports', keyed('order-1'))).status).toBe(202)
    expect(await app.statuses(6, '/reports', keyed('order-1'))).toEqual(Array(6).fill(202))
    const other = keyed('order-1', { body: '{"page":2}' })
    expect(await app.statuses(2, '/reports', other)).toEqual([429, 429])
    const malformed = { ...post(), body: '{"page":' }
    expect(await app.statuses(2, '/reports', malformed)).toEqual([429, 429])
    const blocked = await app.ask('/reports', keyed('order-2'))
    expect(JSON.parse(blocked.body)).toMatchObject({ title: 'Abnormal Usage Detected' })
  })

  it('counts no strike of the penalty around a route either', async () => {
    const queue = createQueue<NativeRequest>({ broker: memoryBroker(), identity: apiKey() })
    const app = await start({
      limits: [
        {
          policies: [{ name: 'all', limit: 100, window: '1m' }],
          penalty: { after: 2, within: '1h', for: '5m' },
          routes: {
            'POST /reports': {
              ...{ limit: 1, window: '1m' },
              admission: createAdmission({ queue, monitor: '/jobs', admit: 'overflow' }),
            },
          },
        },
      ],
      routes: [{ method: 'POST', path: '/reports' }],
    })
    expect(await app.statuses(5, '/reports', post())).toEqual([200, 202, 202, 202, 202])
  })

  it.each([
    ['each request', {}],
    ['those that may be retries too', { idempotencyKey: true }],
  ])('tells observers once what became of a request: %s', async (_what, more) => {
    const onDecision = vi.fn()
    const { app } = await queueing({
      queue: { maxDepth: 20, maxDepthPerIdentity: 1 },
      admission: { admit: 'overflow', soft: ['soft'] },
      limits: {
        policies: [
          { name: 'soft', limit: 1, window: '1m' },
          { name: 'hard', limit: 10, window: '1m' },
        ],
        observers: { onDecision },
        ...more,
      },
    })
    const told = () => onDecision.mock.calls.map(([{ decision }]) => decision.allowed)
    for (const [index, status] of [200, 202, 429].entries()) {
      expect((await app.ask('/reports', keyed(`"${index}"`))).status).toBe(status)
    }
    expect(told()).toEqual([true, true, false])
    expect(onDecision.mock.calls[1]?.[0].checks).toMatchObject([{ policy: { name: 'hard' } }])
  })

  it('tells of a request too whose job could not be made', async () => {
    const onDecision = vi.fn()
    const { app } = await queueing({
      onError: () => undefined,
      admission: {
        admit: 'overflow',
        toJob: () => {
          throw new Error('no job')
        },
      },
      limits: { limit: 1, window: '1m', observers: { onDecision } },
    })
    expect(await app.statuses(2, '/reports', post())).toEqual([200, 500])
    expect(onDecision).toHaveBeenCalledTimes(2)
  })

  it('refuses what a hard limit no longer allows when it is asked again, and says so once', async () => {
    const onDecision = vi.fn()
    const memory = memoryStore()
    const { app } = await queueing({
      admission: { admit: 'overflow', soft: ['soft'] },
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
        policies: [
          { name: 'soft', limit: 1, window: '1m' },
          { name: 'hard', limit: 5, window: '1m' },
        ],
        observers: { onDecision },
      },
    })
    expect(await app.statuses(2, '/reports', post())).toEqual([200, 429])
    expect(onDecision.mock.calls.map(([{ decision }]) => decision.allowed)).toEqual([true, false])
  })

  it.each([
    [['sofd'], /soft must be names of policies that are limits: 'soft', but is 'sofd'/],
    [['soft', 'penalty'], /soft must be names of policies that are limits/],
  ])('refuses %j for soft, where there are no such limits', async (soft, message) => {
    const starting = queueing({
      admission: { admit: 'overflow', soft },
      limits: {
        policies: [{ name: 'soft', limit: 1, window: '1m' }],
        penalty: { after: 2, within: '1m', for: '5m' },
      },
    })
    await expect(starting).rejects.toThrow(message)
  })

  it('does not confuse policies in shadow with those that are enforced', async () => {
    const { app } = await queueing({
      admission: { admit: 'overflow', soft: ['soft'] },
      limits: {
        policies: [
          { name: 'trial', limit: 0, window: '1m', mode: 'shadow' },
          { name: 'soft', limit: 1, window: '1m' },
          { name: 'hard', limit: 2, window: '1m' },
        ],
      },
    })
    expect(await app.statuses(4, '/reports', post())).toEqual([200, 202, 429, 429])
  })

  it('refuses what is over a soft limit while the queue is full, and names the longer wait', async () => {
    const { app } = await queueing({
      queue: { maxDepth: 1 },
      admission: { admit: 'overflow' },
      limits: { limit: 1, window: '2s' },
    })
    expect(await app.statuses(2, '/reports', post())).toEqual([200, 202])
    const refused = await app.ask('/reports', post())
    expect(refused.status).toBe(429)
    expect(refused.field('retry-after')).toBe('5')
  })
}
