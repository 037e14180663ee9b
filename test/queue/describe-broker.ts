import { setTimeout as sleep } from 'node:timers/promises'
import { memoryStore } from '@sluice/core'
import type { JobHandler, QueueEvent, Settlement } from '@sluice/queue'
import { brokerConformance } from '@sluice/testing'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { until } from '../support/until.ts'
import { done, newJob, roomy, TestBench, untilAborted } from './broker-bench.ts'
import type { BrokerDriver, BrokerLimits } from './broker-drivers.ts'

const dead: Settlement = { outcome: 'dead', error: 'no' }
const long = 'x'.repeat(3_000)

/** What each of our brokers promises: what the kit tests, and more. */
export function describeBroker(driver: BrokerDriver): void {
  const { make, twin, loseLease } = driver

  brokerConformance({
    ...{ describe, it, waitMs: 20_000 },
    open() {
      const broker = make()
      return { broker, ...(twin && { openTwin: () => twin(broker) }) }
    },
  })

  function open(limits?: BrokerLimits): TestBench {
    const broker = make(limits)
    return new TestBench(broker, twin && (() => twin(broker)))
  }

  describe('ends jobs', () => {
    const idempotency = { key: 'order-1', fingerprint: 'a' }

    it('runs a dead letter again that is older than it was worth', async () => {
      const bench = open()
      const expiresAt = Date.now() + 60_000
      const { id } = await bench.enqueued(newJob({ expiresAt }))
      const handler = vi.fn<JobHandler>().mockRejectedValueOnce(new Error('it is down'))
      bench.worker({ handler, attempts: 1 })
      await bench.reaches(id, 'failed')
      vi.useFakeTimers({ toFake: ['Date'], now: expiresAt })
      onTestFinished(() => void vi.useRealTimers())
      expect(await bench.broker.retry(id)).toBe(true)
      await bench.reaches(id, 'done')
    })

    it('ends a job whose error is half of a character, or is cut within one', async () => {
      const bench = open()
      const { id } = await bench.enqueued()
      const handler = () => Promise.reject(new Error(`\ud83d${'x'.repeat(1_021)}😀😀`))
      bench.worker({ handler, attempts: 2, backoff: { base: 600, max: 600 } })
      await bench.reaches(id, 'failed')
      await bench.has({ id, attempts: 2 }, 'a job that failed twice')
    })

    it('says of a job that nobody has begun to run in time that it expired, and gives its place away', async () => {
      const bench = open()
      const { broker } = bench
      const terms = { ...roomy, maxDepth: 2, maxDepthPerIdentity: 2 }
      const expiresAt = Date.now() + 60_000
      const first = await bench.enqueued(newJob({ expiresAt }), terms)
      const second = await bench.enqueued(newJob(), terms)
      expect(await broker.enqueue(newJob(), terms)).toMatchObject({ outcome: 'full' })
      vi.useFakeTimers({ toFake: ['Date'], now: expiresAt })
      onTestFinished(() => void vi.useRealTimers())
      const { id, identity } = first
      await bench.has({ id, state: 'expired' }, 'a job whose time is over')
      expect(await broker.cancel(id)).toBe('finished')
      const onExpired = vi.fn()
      const third = await bench.enqueued(newJob(), { ...terms, onExpired })
      expect(onExpired.mock.calls).toMatchObject([[{ id }]])
      expect(await broker.depth()).toMatchObject({ depth: 2 })
      await bench.has({ id, state: 'expired', identity, attempts: 0 }, 'a job that gave way')
      const runs = bench.settling(done)
      await bench.reaches(third.id, 'done')
      expect(runs.map((run) => run.id)).toEqual([second.id, third.id])
    })

    it('keeps an idempotency key while its job is open, though for longer than the retention', async () => {
      const bench = open()
      const terms = { ...roomy, retentionMs: 300, idempotency }
      const { id } = await bench.enqueued(newJob(), terms)
      await sleep(400)
      expect(await bench.broker.enqueue(newJob(), terms)).toEqual({ outcome: 'known', id })
    })

    it('frees the idempotency key of a dead letter after the retention, and takes it back with the job', async () => {
      const bench = open()
      const terms = { ...roomy, retentionMs: 1_000, idempotency }
      const job = await bench.enqueued(newJob(), terms)
      bench.settling(dead, { outcome: 'retry', delayMs: 60_000, error: 'no' })
      await bench.reaches(job.id, 'failed')
      const known = { outcome: 'known', id: job.id }
      expect(await bench.broker.enqueue(newJob(), terms)).toEqual(known)
      await sleep(1_050)
      expect(await bench.broker.retry(job.id)).toBe(true)
      expect(await bench.broker.enqueue(newJob(), terms)).toEqual(known)
    })

    it('tells of a job that was cancelled as long as it keeps outcomes', async () => {
      const bench = open()
      const { id } = await bench.enqueued(newJob(), { ...roomy, retentionMs: 500 })
      expect(await bench.broker.cancel(id)).toBe('cancelled')
      await bench.has({ id, state: 'cancelled' }, 'a cancelled job')
      await until('it is forgotten', async () => (await bench.broker.status(id)) === undefined)
    })

    it('does not say later of a job that was done that it was cancelled', async () => {
      const bench = open()
      const terms = { ...roomy, retentionMs: 1_000 }
      const { id } = await bench.enqueued(newJob(), terms)
      const finish: (() => void)[] = []
      bench.work(async () => {
        await new Promise<void>((resolve) => finish.push(resolve))
        return done
      })
      await until('it runs', async () => finish.length === 1)
      expect(await bench.broker.cancel(id)).toBe('cancelling')
      finish[0]?.()
      await bench.reaches(id, 'done')
      expect(await bench.broker.cancel(id)).toBe('finished')
      await sleep(1_050)
      // What is kept too long goes when something else ends.
      const other = await bench.enqueued(newJob(), terms)
      await until('it runs', async () => finish.length === 2)
      finish[1]?.()
      await bench.reaches(other.id, 'done')
      expect(await bench.broker.status(id)).toBeUndefined()
      expect(await bench.broker.cancel(id)).toBe('unknown')
    })

    it.each<[string, BrokerLimits, Settlement, string]>([
      ['outcomes', { maxKept: 2 }, done, 'short'],
      ['dead letters', { maxDeadLetters: 2 }, dead, 'short'],
      ['bytes of outcomes', { maxKeptBytes: 12_000 }, { outcome: 'done', result: long }, ''],
      ['bytes of dead letters', { maxKeptBytes: 12_000 }, dead, long],
    ])('keeps as many %s as it is told', async (_what, limits, settlement, payload) => {
      const bench = open(limits)
      const { broker } = bench
      bench.settling(settlement)
      const state = settlement === dead ? 'failed' : 'done'
      const ids: string[] = []
      for (let i = 0; i < 4; i += 1) {
        const terms = { ...roomy, idempotency: { ...idempotency, key: `order-${i}` } }
        const { id } = await bench.enqueued(newJob({ payload }), terms)
        ids.push(id)
        await until('it has ended', async () => (await broker.status(id))?.state === state)
      }
      const kept = async () => {
        const all = await Promise.all(ids.map((id) => broker.status(id)))
        return all.map((status) => status?.state)
      }
      await until('the oldest are gone', async () => (await kept())[1] === undefined)
      expect(await kept()).toEqual([undefined, undefined, state, state])
      // Nor do keys stand for what is not kept.
      expect(await broker.find('user:1', 'order-0')).toBeUndefined()
      expect(await broker.find('user:1', 'order-3')).toBe(ids[3])
      if (state === 'done') return
      // What runs again is no dead letter, and leaves room for others.
      expect(await broker.deadLetters({ offset: 0, limit: 9 })).toHaveLength(2)
      expect(await broker.retry(ids[2] ?? '')).toBe(true)
      await until('it has failed again', async () => (await kept())[2] === state)
      expect(await kept()).toEqual([undefined, undefined, state, state])
    })

    it('counts cancelled jobs among the outcomes that it keeps', async () => {
      const bench = open({ maxKept: 2 })
      const worker = bench.work(async () => done)
      const { id } = await bench.enqueued()
      await bench.reaches(id, 'done')
      await worker.close()
      for (let i = 0; i < 3; i += 1) await bench.broker.cancel((await bench.enqueued()).id)
      expect(await bench.broker.status(id)).toBeUndefined()
    })
  })

  // With a broker of one process a worker is tested by the faked clock.
  describe.skipIf(!twin)('has workers', () => {
    it('that return what waits for the rate when they close, and another takes it at once', async () => {
      const bench = open()
      const ran: unknown[] = []
      const handler: JobHandler = ({ payload }) => void ran.push(payload)
      const rate = { store: memoryStore(), limit: 1, window: '1s', lease: '1m', handler } as const
      const worker = bench.worker(rate)
      for (let i = 0; i < 3; i += 1) await bench.enqueued(newJob({ payload: i }))
      await until('two wait', () => ran.length === 1 && worker.waiting === 2)
      await worker.close()
      await until('they wait for another', async () => (await bench.broker.depth()).running === 0)
      expect(await bench.broker.depth()).toMatchObject({ depth: 2 })
      bench.worker(rate)
      await until('all ran', () => ran.length === 3)
      expect([...ran].sort()).toEqual([0, 1, 2])
    })

    it('that tell a handler that its job is cancelled from another process', async () => {
      const bench = open()
      const elsewhere = await bench.twin()
      const { id } = await bench.enqueued()
      const worker = bench.worker({ handler: (_job, { signal }) => untilAborted(signal) })
      await until('it runs', () => worker.running === 1)
      expect(await elsewhere.cancel(id)).toBe('cancelling')
      await bench.reaches(id, 'cancelled')
      expect(await elsewhere.status(id)).toMatchObject({ state: 'cancelled' })
      expect(await bench.broker.depth()).toMatchObject({ depth: 0, running: 0 })
    })

    it.skipIf(!loseLease)('that are told of a lost lease, and another run counts', async () => {
      const bench = open()
      const { id } = await bench.enqueued()
      const signals: AbortSignal[] = []
      const events: QueueEvent[] = []
      const worker = bench.worker({
        lease: '1s',
        handler: async (_job, { signal }) => {
          signals.push(signal)
          if (signals.length > 1) return 'second'
          await loseLease?.(bench.broker, id)
          await new Promise((resolve) => signal.addEventListener('abort', resolve))
          // It does not heed its signal: the other run ends first.
          await bench.reaches(id, 'done')
          return 'first'
        },
        observers: { onEvent: (event) => events.push(event) },
      })
      await bench.reaches(id, 'done')
      await worker.close()
      await bench.has({ id, result: 'second' }, 'the outcome of the run that counts')
      expect(signals.map(({ reason }) => reason?.name)).toEqual(['LeaseLost', undefined])
      const types = events.map(({ type }) => type)
      expect(types.filter((type) => type === 'done')).toEqual(['done'])
      expect(types).toContain('stalled')
    })
  })
}
