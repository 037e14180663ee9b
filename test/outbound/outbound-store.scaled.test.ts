import { memoryStore } from '@sluice/core'
import type { Outbound, OutboundOptions } from '@sluice/outbound'
import fc from 'fast-check'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { mostWithin } from '../support/most-within.ts'
import { scaled } from '../support/scale.ts'
import { storeThrough } from '../support/store-through.ts'
import { fakeTime, observed, wait } from './faked-time.ts'
import { flakyStore, seenFrom } from './flaky-store.ts'

fakeTime()
beforeEach(() => {
  vi.spyOn(console, 'warn').mockImplementation(() => undefined)
})

const { events, make } = observed({ limits: [{ limit: 2, window: '1s' }] })

/** Processes with a view of one store each. */
function fleet(count: number, options: Partial<OutboundOptions> = {}) {
  const store = flakyStore()
  const views = Array.from({ length: count }, () => seenFrom(store))
  return { store, views, outbounds: views.map((view) => make({ store: view, ...options })) }
}

describe('an outbound whose store fails', () => {
  it('exceeds no quota while the store goes away, comes back empty, or both', async () => {
    const cases = fc.record({
      limit: fc.integer({ min: 1, max: 5 }),
      windowMs: fc.integer({ min: 200, max: 3_000 }),
      processes: fc.integer({ min: 1, max: 3 }),
      calls: fc.array(
        fc.record({
          afterMs: fc.integer({ min: 0, max: 2_000 }),
          arrivesAfterMs: fc.integer({ min: 0, max: 3_000 }),
          answersAfterMs: fc.integer({ min: 0, max: 3_000 }),
        }),
        { minLength: 5, maxLength: 40 },
      ),
      incidents: fc.array(
        fc.record({
          afterMs: fc.integer({ min: 100, max: 5_000 }),
          awayMs: fc.integer({ min: 0, max: 9_000 }),
          losesAll: fc.boolean(),
        }),
        { minLength: 1, maxLength: 3 },
      ),
    })
    const property = fc.asyncProperty(
      cases,
      async ({ limit, windowMs, processes, calls, incidents }) => {
        const { store, outbounds } = fleet(processes, {
          limits: [{ limit, window: windowMs }],
          maxWait: '1h',
        })
        const counted: number[] = []
        async function call(index: number): Promise<void> {
          const { arrivesAfterMs = 0, answersAfterMs = 0 } = calls[index] ?? {}
          await outbounds[index % processes]?.schedule(async () => {
            await wait(arrivesAfterMs)
            counted.push(Date.now())
            await wait(answersAfterMs)
          })
        }
        async function callAll(): Promise<void> {
          const done: Promise<void>[] = []
          for (const [index, { afterMs }] of calls.entries()) {
            await wait(afterMs)
            done.push(call(index))
          }
          await Promise.all(done)
        }
        async function disturb(): Promise<void> {
          for (const { afterMs, awayMs, losesAll } of incidents) {
            await wait(afterMs)
            store.isAway = awayMs > 0
            if (losesAll) store.loseAll()
            await wait(awayMs)
            store.isAway = false
          }
        }
        const done = Promise.all([callAll(), disturb()])
        await vi.advanceTimersByTimeAsync(900_000)
        await done
        expect(counted).toHaveLength(calls.length)
        expect(mostWithin(counted, windowMs)).toBeLessThanOrEqual(limit)
        await Promise.all(outbounds.map((outbound) => outbound.close()))
      },
    )
    await fc.assert(property, {
      numRuns: scaled(10, 60),
      // The store is lost again as one process has waited for its first window, and another one has not yet.
      examples: [
        [
          {
            limit: 1,
            windowMs: 2_252,
            processes: 2,
            calls: Array(5).fill({ afterMs: 0, arrivesAfterMs: 0, answersAfterMs: 0 }),
            incidents: [{ afterMs: 2_253, awayMs: 517, losesAll: true }],
          },
        ],
      ],
    })
  }, 120_000)

  it('reports answers from an outage before it admits calls', async () => {
    const { views, outbounds } = fleet(2)
    const [one, other] = outbounds
    const [view] = views
    await first(one)
    await vi.advanceTimersByTimeAsync(2_000)
    const slow = [1, 2].map(() => one?.schedule(() => wait(1_000)))
    await vi.advanceTimersByTimeAsync(500)
    if (view) view.isAway = true
    await vi.advanceTimersByTimeAsync(5_000)
    await Promise.all(slow)
    const calls: number[] = []
    const later = other?.schedule(async () => void calls.push(Date.now()))
    await vi.advanceTimersByTimeAsync(3_000)
    expect(calls).toEqual([])
    if (view) view.isAway = false
    await vi.advanceTimersByTimeAsync(20_000)
    expect(calls).toHaveLength(1)
    await later
  })

  it('keeps the units of a silent process for half a minute and a window', async () => {
    const { views, outbounds } = fleet(2)
    const [one, other] = outbounds
    await first(one)
    await vi.advanceTimersByTimeAsync(2_000)
    for (let i = 0; i < 2; i += 1) void one?.schedule(() => new Promise(() => undefined))
    await vi.advanceTimersByTimeAsync(100)
    const [view] = views
    if (view) view.isAway = true
    const cutOffAt = Date.now()
    const later = other?.schedule(async () => Date.now())
    await vi.advanceTimersByTimeAsync(40_000)
    const waitedMs = ((await later) ?? 0) - cutOffAt
    expect(waitedMs).toBeGreaterThan(30_000)
    expect(waitedMs).toBeLessThan(32_000)
  })

  it('receives the last answers before it is closed', async () => {
    const { store, outbounds } = fleet(1)
    const [one] = outbounds
    await first(one)
    await one?.schedule(async () => undefined)
    await one?.close()
    store.isAway = true
    await vi.advanceTimersByTimeAsync(1_100)
    store.isAway = false
    const startedAt = Date.now()
    expect((await first(make({ store: seenFrom(store) }))) - startedAt).toBeLessThan(100)
  })

  it('waits after data loss until others have reported their calls, and reports it', async () => {
    const { store, outbounds } = fleet(2)
    const [one, idle] = outbounds
    await first(one)
    await first(one)
    store.loseAll()
    const lostAt = Date.now()
    const later = idle?.schedule(async () => Date.now())
    await vi.advanceTimersByTimeAsync(20_000)
    const waitedMs = ((await later) ?? 0) - lostAt
    expect(waitedMs).toBeGreaterThanOrEqual(3_000)
    expect(waitedMs).toBeLessThan(15_500)
    expect(events).toContainEqual(expect.objectContaining({ type: 'recovering' }))
  })

  it('reports the calls of a long window after data loss, without waiting for all of it', async () => {
    const limits = [{ limit: 3, window: '1h' }] as const
    const { store, outbounds } = fleet(2, { limits, maxWait: '2h' })
    const [one, other] = outbounds
    await first(one)
    await first(one)
    const lastAt = Date.now()
    store.loseAll()
    const calls: number[] = []
    const later = [1, 2].map(() => other?.schedule(async () => void calls.push(Date.now())))
    await vi.advanceTimersByTimeAsync(60_000)
    expect(calls).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(2 * 3_600_000)
    await Promise.all(later)
    expect((calls[1] ?? 0) - lastAt).toBeGreaterThan(3_600_000 - 1)
  })

  it('waits at the first start for at most `recovery`, and not again', async () => {
    const limits = [{ limit: 1_000, window: '1d' }] as const
    const { store, outbounds } = fleet(1, { limits, recovery: '3s' })
    const startedAt = Date.now()
    expect((await first(outbounds[0])) - startedAt).toBeLessThan(3_500)
    const another = make({ limits, store: seenFrom(store) })
    const secondAt = Date.now()
    expect((await first(another)) - secondAt).toBeLessThan(100)
  })

  it('continues after an invalid answer of the store', async () => {
    const memory = memoryStore()
    let isBroken = true
    const outbound = make({
      store: {
        ...storeThrough(memory, () => undefined),
        apply: (op, checks) => (isBroken ? JSON.parse('null') : memory.apply(op, checks)),
      },
    })
    const later = outbound.schedule(async () => 'made')
    await vi.advanceTimersByTimeAsync(3_000)
    isBroken = false
    await vi.advanceTimersByTimeAsync(20_000)
    expect(await later).toBe('made')
    const again = outbound.schedule(() => wait(5_000))
    await vi.advanceTimersByTimeAsync(2_000)
    isBroken = true
    await vi.advanceTimersByTimeAsync(5_000)
    isBroken = false
    await again
    await vi.advanceTimersByTimeAsync(40_000)
  })

  /** Makes a call that is answered at once, and gives when that was. */
  async function first(outbound: Outbound | undefined): Promise<number> {
    let madeAt = 0
    const made = outbound?.schedule(async () => {
      madeAt = Date.now()
    })
    for (let i = 0; i < 4_000 && madeAt === 0; i += 1) await vi.advanceTimersByTimeAsync(10)
    await made
    await vi.advanceTimersByTimeAsync(0)
    return madeAt
  }
})
