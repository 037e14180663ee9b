import { type Broker, createWorker, memoryBroker, type Settlement } from '@sluice/queue'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { mostWithin } from '../support/most-within.ts'
import { fakeTime, newJob, roomy } from './broker-bench.ts'

/** A broker whose workers hold a job for a time only, and the settlements of their runs. */
function holding(maxHeldMs: number): { broker: Broker; settlements: Settlement[] } {
  const memory = memoryBroker()
  const runs = memory.work.bind(memory)
  const settlements: Settlement[] = []
  const work: Broker['work'] = (run, options) =>
    runs(async (...delivery) => {
      const settlement = await run(...delivery)
      settlements.push(settlement)
      return settlement
    }, options)
  return { broker: Object.assign(memory, { maxHeldMs, work }), settlements }
}

describe('a worker of a broker whose jobs cannot be held', () => {
  fakeTime()

  it('puts all back at once when no run can start in time, until one can', async () => {
    const { broker, settlements } = holding(10_000)
    for (const job of [newJob(), newJob(), newJob()]) await broker.enqueue(job, roomy)
    const startedAt: number[] = []
    const seconds = (): number => Math.floor((Date.now() - openedAt) / 1_000)
    const openedAt = Date.now()
    const worker = createWorker({
      ...{ broker, limit: 1, window: '1m' },
      handler: () => void startedAt.push(seconds()),
    })
    await vi.advanceTimersByTimeAsync(1_000)
    expect([startedAt, worker.waiting]).toEqual([[0], 0])
    expect(await broker.depth()).toMatchObject({ depth: 2, running: 0 })
    const postponed = settlements.filter(({ outcome }) => outcome === 'postponed')
    expect(postponed).toEqual([
      { outcome: 'postponed', delayMs: 60_000, pausesWorker: true },
      { outcome: 'postponed', delayMs: 60_000, pausesWorker: true },
    ])
    await vi.advanceTimersByTimeAsync(119_100)
    expect(startedAt).toEqual([0, 60, 120])
    await worker.close()
  })

  it('exceeds no rate and loses no job, however long it may hold one', async () => {
    const cases = fc.record({
      maxHeldMs: fc.integer({ min: 1, max: 500 }),
      limit: fc.integer({ min: 1, max: 3 }),
      windowMs: fc.integer({ min: 20, max: 2_000 }),
      concurrency: fc.integer({ min: 1, max: 8 }),
      jobs: fc.integer({ min: 1, max: 12 }),
    })
    const property = fc.asyncProperty(cases, async ({ maxHeldMs, jobs, windowMs, ...rate }) => {
      const { broker } = holding(maxHeldMs)
      const startedAt = new Map<string, number>()
      const worker = createWorker({
        ...{ broker, window: `${windowMs}ms` as const, ...rate },
        handler: ({ id }) => void startedAt.set(id, Date.now()),
      })
      for (let i = 0; i < jobs; i += 1) await broker.enqueue(newJob(), roomy)
      for (let i = 0; i < jobs * 20 && startedAt.size < jobs; i += 1) {
        await vi.advanceTimersByTimeAsync(windowMs + maxHeldMs)
      }
      expect(startedAt.size).toBe(jobs)
      expect(mostWithin([...startedAt.values()], windowMs)).toBeLessThanOrEqual(rate.limit + 1)
      const closing = worker.close({ grace: 1 })
      await vi.advanceTimersByTimeAsync(5_000)
      await closing
    })
    await fc.assert(property, { numRuns: 30 })
  })
})
