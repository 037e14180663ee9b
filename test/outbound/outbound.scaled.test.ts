import { memoryStore } from '@sluice/core'
import type { OutboundEvent, OutboundOptions } from '@sluice/outbound'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { mostWithin } from '../support/most-within.ts'
import { scaled } from '../support/scale.ts'
import { fakeTime, observed, wait } from './faked-time.ts'

describe('an outbound', () => {
  fakeTime()
  const { events, make } = observed({ limits: [{ limit: 2, window: '1s' }], by: 'process-1' })

  it('notifies each observer of a list, and shows the number of waiting calls', async () => {
    const onOutbound = vi.fn()
    const told: OutboundEvent[] = []
    const observer = { onOutbound, onEvent: (event: OutboundEvent) => void told.push(event) }
    const outbound = make({ observers: [observer, { onEvent: (event) => events.push(event) }] })
    const calls = [1, 2, 3].map(() => outbound.schedule(async () => 'ok'))
    await vi.advanceTimersByTimeAsync(0)
    expect(onOutbound).toHaveBeenCalledOnce()
    expect(onOutbound.mock.calls[0]?.[0]).toMatchObject({ outbound: 'crm', waiting: 1 })
    await vi.advanceTimersByTimeAsync(60_000)
    await Promise.all(calls)
    expect(told).toEqual(events)
    expect(told.filter(({ type }) => type === 'call')).toHaveLength(3)
  })

  it("never exceeds the third party's limit in any window, wherever it counts, from any process", async () => {
    const cases = fc.record({
      limit: fc.integer({ min: 1, max: 6 }),
      windowMs: fc.integer({ min: 100, max: 1_000 }),
      fleet: fc.integer({ min: 1, max: 4 }),
      calls: fc.array(
        fc.record({
          cost: fc.integer({ min: 1, max: 3 }),
          arrivesAfterMs: fc.integer({ min: 0, max: 1_500 }),
          answersAfterMs: fc.integer({ min: 0, max: 1_500 }),
          // Given up before it arrives, or after.
          abortsAfterMs: fc.option(fc.integer({ min: 0, max: 3_000 })),
        }),
        { minLength: 1, maxLength: 40 },
      ),
    })
    const property = fc.asyncProperty(cases, async ({ limit, windowMs, fleet, calls }) => {
      const store = memoryStore()
      const limits = [{ limit, window: windowMs }]
      const outbounds = Array.from({ length: fleet }, () =>
        make({ store, limits, maxWait: '1h', lateArrival: '2s' }),
      )
      const counted: number[] = []
      async function arrive({ cost, arrivesAfterMs, answersAfterMs }: (typeof calls)[number]) {
        await wait(arrivesAfterMs)
        for (let i = 0; i < Math.min(cost, limit); i += 1) counted.push(Date.now())
        await wait(answersAfterMs)
      }
      const done = calls.map((call, index) =>
        outbounds[index % fleet]?.schedule(
          async () => {
            const arrival = arrive(call)
            if (call.abortsAfterMs === null) return arrival
            await Promise.race([arrival, wait(call.abortsAfterMs)])
            throw new Error('given up')
          },
          { cost: Math.min(call.cost, limit) },
        ),
      )
      const settled = Promise.allSettled(done)
      await vi.advanceTimersByTimeAsync(900_000)
      await settled
      expect(mostWithin(counted, windowMs)).toBeLessThanOrEqual(limit)
      await Promise.all(outbounds.map((outbound) => outbound.close()))
    })
    await fc.assert(property, { numRuns: scaled(8, 40) })
  }, 60_000)

  it('uses nearly all of a quota', async () => {
    const outbound = make({ limits: [{ limit: 20, window: '1s' }] })
    let count = 0
    for (let i = 0; i < 700; i += 1) {
      void outbound.schedule(async () => {
        await wait(25)
        count += 1
        await wait(25)
      })
    }
    await vi.advanceTimersByTimeAsync(30_000)
    expect(count / 600).toBeGreaterThan(0.9)
  })

  it('respects all of several quotas', async () => {
    const limits = [
      { limit: 2, window: '1s' },
      { limit: 3, window: '1m' },
    ] as const
    const outbound = make({ limits, maxWait: '5m' })
    const made: number[] = []
    for (let i = 0; i < 5; i += 1) void outbound.schedule(async () => void made.push(Date.now()))
    await vi.advanceTimersByTimeAsync(30_000)
    expect(made).toHaveLength(3)
    await vi.advanceTimersByTimeAsync(40_000)
    expect(made).toHaveLength(5)
  })

  it('makes more urgent calls first, and keeps order within a priority', async () => {
    const outbound = make({ limits: [{ limit: 1, window: '1s' }] })
    const order: string[] = []
    const call = (label: string, priority: number) =>
      outbound.schedule(async () => void order.push(label), { priority })
    const done = [call('first', 0), call('later', 0), call('urgent', 1), call('last', -1)]
    await vi.advanceTimersByTimeAsync(10_000)
    await Promise.all(done)
    expect(order).toEqual(['urgent', 'first', 'later', 'last'])
  })

  it('bounds the number of waiting calls and their wait', async () => {
    const outbound = make({ limits: [{ limit: 1, window: '1m' }], maxQueue: 1, maxWait: '2s' })
    await outbound.schedule(async () => undefined)
    const waits = outbound.schedule(async () => undefined).catch((error) => error)
    await expect(outbound.schedule(async () => undefined)).rejects.toMatchObject({
      code: 'SLUICE_OUTBOUND_REFUSED',
      message: /maxQueue/,
    })
    const signal = AbortSignal.abort(new Error('the user left'))
    await expect(outbound.schedule(async () => undefined, { signal })).rejects.toThrow('the user')
    expect(outbound.waiting).toBe(1)
    await vi.advanceTimersByTimeAsync(2_100)
    expect(await waits).toMatchObject({ code: 'SLUICE_OUTBOUND_REFUSED', message: /maxWait/ })
    expect(outbound.waiting).toBe(0)
  })

  it('drops an aborted call, and rejects all when closed', async () => {
    const outbound = make({ limits: [{ limit: 1, window: '1m' }] })
    await outbound.schedule(async () => undefined)
    const controller = new AbortController()
    const made = vi.fn()
    const aborted = outbound.schedule(made, { signal: controller.signal }).catch((error) => error)
    const closed = outbound.schedule(made).catch((error) => error)
    await vi.advanceTimersByTimeAsync(100)
    controller.abort(new Error('the user left'))
    expect(await aborted).toMatchObject({ message: 'the user left' })
    await outbound.close()
    expect(await closed).toMatchObject({ code: 'SLUICE_OUTBOUND_REFUSED' })
    await expect(outbound.schedule(made)).rejects.toThrow(/closed/)
    await vi.advanceTimersByTimeAsync(120_000)
    expect(made).not.toHaveBeenCalled()
    const reasons = events.flatMap((event) => (event.type === 'refused' ? [event.reason] : []))
    expect(reasons).toEqual(['aborted', 'closed', 'closed'])
  })

  it('records who called what, when, at what cost and with what result, without URL secrets', async () => {
    vi.stubGlobal('fetch', async () => new Response('', { status: 201 }))
    const outbound = make()
    const startedAt = Date.now()
    await outbound.fetch('https://crm.example/contacts?token=1', { method: 'POST', cost: 2 })
    await vi.advanceTimersByTimeAsync(2_000)
    const down = outbound.schedule(() => Promise.reject(new Error('down')), { label: 'sync' })
    await expect(down).rejects.toThrow('down')
    expect(events).toMatchObject([
      {
        ...{ outbound: 'crm', by: 'process-1', type: 'call', cost: 2, answer: 201 },
        ...{ label: 'POST https://crm.example/contacts', startedAt, waitMs: 0, runMs: 0 },
      },
      { type: 'call', label: 'sync', cost: 1, answer: 'failed' },
    ])
    await outbound.close()
  })

  it('rejects a cost that can never fit', async () => {
    const call = make().schedule(async () => 1, { cost: 3 })
    await expect(call).rejects.toThrow(/^cost must be a whole number from 1 to 2/)
  })

  it.each([
    [{ name: '' }, /^name must be/],
    [{ limits: [] }, /^limits must be/],
    [{ limits: [{ limit: 0, window: '1s' }] }, /^limits\[0\]\.limit must be/],
    [{ limits: [{ limit: 1, window: '1' }] }, /^limits\[0\]\.window must be/],
    [{ maxQueue: 0 }, /^maxQueue must be/],
    [{ maxWait: 0 }, /^maxWait must be/],
    [{ timeout: 0 }, /^timeout must be/],
    [{ lateArrival: 'late' }, /^lateArrival must be/],
    [{ recovery: -1 }, /^recovery must be/],
    [{ observers: { onEvent: 5 } }, /^observers\.onEvent must be/],
    [{ observers: {} }, /^observers must be an object with at least one of .* onOutbound/],
    [{ observers: null }, /^observers must be an object/],
    [{ rate: 5 }, /there is no option 'rate'/],
  ])('rejects invalid options: %j', (wrong, message) => {
    expect(() => make(wrong as Partial<OutboundOptions>)).toThrow(message)
  })
})
