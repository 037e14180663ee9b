import { setImmediate } from 'node:timers/promises'
import type { NewJob } from '@sluice/queue'
import { describe, expect, it } from 'vitest'
import { until } from '../support/until.ts'
import { BrokerBench } from './broker-bench.ts'
import type { BrokerDriver } from './broker-drivers.ts'
import { newJob, roomy } from './new-job.ts'

/** How every broker must deliver jobs, and keep its bounds. */
export function describeDelivery(driver: BrokerDriver): void {
  describe('delivers', () => {
    const bench = BrokerBench.of(driver)

    it('runs a job once, and keeps what it came to', async () => {
      const job = await bench.enqueued()
      expect(await bench.broker.status(job.id)).toMatchObject({
        id: job.id,
        identity: 'user:1',
        state: 'pending',
        enqueuedAt: job.enqueuedAt,
        attempts: 0,
      })
      const runs = bench.settling({ outcome: 'done', result: { pages: 3 } })
      await bench.reaches(job.id, 'done')
      expect(runs).toMatchObject([{ ...job, attempt: 1 }])
      expect(await bench.broker.status(job.id)).toMatchObject({ attempts: 1, result: { pages: 3 } })
    })

    it('never shows a job as done without its result, nor a cancelled job as done', async () => {
      const torn: unknown[] = []
      let last = ''
      bench.work(async ({ id, payload }) => {
        last = id
        await setImmediate()
        return payload ? { outcome: 'done', result: 'there' } : { outcome: 'cancelled' }
      }, 1)
      for (let i = 0; i < 40; i += 1) {
        const { id } = await bench.enqueued(newJob({ payload: i % 2 }))
        const watch = async (): Promise<void> => {
          for (;;) {
            await setImmediate()
            const { state, result } = (await bench.broker.status(id)) ?? {}
            const isWhole = i % 2 ? state !== 'done' || result === 'there' : state !== 'done'
            if (!isWhole) torn.push({ id, state, result })
            if (state === 'done' || state === 'cancelled') return
          }
        }
        await Promise.all([watch(), watch(), watch()])
        expect(last).toBe(id)
      }
      expect(torn).toEqual([])
    })

    it('runs jobs in their order, as many at once as it may', async () => {
      const jobs: NewJob[] = []
      for (let i = 0; i < 6; i += 1) jobs.push(await bench.enqueued(newJob({ payload: i })))
      const started: unknown[] = []
      let running = 0
      let most = 0
      bench.work(async ({ payload }) => {
        started.push(payload)
        running += 1
        most = Math.max(most, running)
        await new Promise((resolve) => setTimeout(resolve, 20))
        running -= 1
        return { outcome: 'done', result: null }
      }, 2)
      for (const { id } of jobs) await bench.reaches(id, 'done')
      expect(started).toEqual([0, 1, 2, 3, 4, 5])
      expect(most).toBe(2)
    })

    it('runs a job again after the delay, and counts its attempts', async () => {
      const job = await bench.enqueued()
      const runs = bench.settling(
        { outcome: 'retry', delayMs: 30, error: 'not yet' },
        { outcome: 'retry', delayMs: 0, error: 'not yet' },
        { outcome: 'done', result: 'at last' },
      )
      await bench.reaches(job.id, 'done')
      expect(runs.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
      expect(await bench.broker.depth()).toMatchObject({ depth: 0 })
    })

    it('counts no attempt for a job that is returned', async () => {
      const job = await bench.enqueued()
      const runs = bench.settling({ outcome: 'returned' }, { outcome: 'done', result: null })
      await bench.reaches(job.id, 'done')
      expect(runs.map(({ attempt }) => attempt)).toEqual([1, 1])
    })

    it('keeps dead letters, the newest first, and runs one again on demand', async () => {
      const first = await bench.enqueued()
      const runs = bench.settling(
        { outcome: 'dead', error: 'no such page' },
        { outcome: 'dead', error: 'no such page either' },
        { outcome: 'done', result: 'found' },
      )
      await bench.reaches(first.id, 'failed')
      const second = await bench.enqueued()
      await bench.reaches(second.id, 'failed')
      expect(await bench.broker.depth()).toMatchObject({ depth: 0, dead: 2 })
      expect(await bench.broker.deadLetters({ offset: 0, limit: 10 })).toMatchObject([
        { id: second.id, state: 'failed', error: 'no such page either', attempts: 1 },
        { id: first.id, error: 'no such page' },
      ])
      expect(await bench.broker.deadLetters({ offset: 1, limit: 1 })).toMatchObject([
        { id: first.id },
      ])
      const retries = await Promise.all([1, 2].map(() => bench.broker.retry(first.id)))
      expect(retries.sort()).toEqual([false, true])
      await bench.reaches(first.id, 'done')
      expect(runs.at(-1)).toMatchObject({ id: first.id, attempt: 1, payload: { page: 1 } })
      expect(await bench.broker.retry(first.id)).toBe(false)
      expect(await bench.broker.depth()).toMatchObject({ depth: 0, dead: 1 })
    })

    it('keeps as many dead letters as it is told', async () => {
      await bench.replace({ maxDeadLetters: 2 })
      bench.settling({ outcome: 'dead', error: 'no' })
      for (let i = 0; i < 4; i += 1) {
        const { id } = await bench.enqueued()
        await until('it failed', async () => (await bench.broker.status(id))?.state === 'failed')
      }
      expect((await bench.broker.deadLetters({ offset: 0, limit: 10 })).length).toBe(2)
    })

    it('forgets an outcome when its time is over', async () => {
      const job = await bench.enqueued(newJob(), { ...roomy, retentionMs: 1_000 })
      bench.settling({ outcome: 'done', result: null })
      await bench.reaches(job.id, 'done')
      await until('it is forgotten', async () => (await bench.broker.status(job.id)) === undefined)
    })

    it('knows nothing of a job that never was', async () => {
      for (const id of ['nobody', 'wait', 'meta', 'events', newJob().id]) {
        expect(await bench.broker.status(id)).toBeUndefined()
      }
      expect(await bench.broker.cancel('nobody')).toBe('unknown')
      expect(await bench.broker.retry('nobody')).toBe(false)
    })

    it('does not run a job that is cancelled while it waits', async () => {
      const job = await bench.enqueued()
      expect(await bench.broker.cancel(job.id)).toBe('cancelled')
      expect(await bench.broker.cancel(job.id)).toBe('cancelled')
      expect(await bench.broker.status(job.id)).toMatchObject({
        state: 'cancelled',
        identity: 'user:1',
      })
      expect(await bench.broker.depth()).toMatchObject({ depth: 0 })
      const runs = bench.settling({ outcome: 'done', result: null })
      const next = await bench.enqueued()
      await bench.reaches(next.id, 'done')
      expect(runs.map(({ id }) => id)).toEqual([next.id])
      expect(await bench.broker.cancel(next.id)).toBe('finished')
    })

    it('tells the run of a job that is cancelled', async () => {
      const job = await bench.enqueued()
      bench.work(async (_job, signal) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        return { outcome: 'cancelled' }
      })
      await bench.reaches(job.id, 'running')
      expect(await bench.broker.depth()).toMatchObject({ depth: 1, running: 1 })
      expect(await bench.broker.cancel(job.id)).toBe('cancelling')
      await bench.reaches(job.id, 'cancelled')
      expect(await bench.broker.depth()).toMatchObject({ depth: 0 })
    })

    it('says what expired', async () => {
      const job = await bench.enqueued()
      bench.settling({ outcome: 'expired' })
      await bench.reaches(job.id, 'expired')
    })

    it('never takes more jobs than its bound, whoever asks at once', async () => {
      const terms = { ...roomy, maxDepth: 20 }
      const brokers = [bench.broker, driver.twin?.(bench.broker) ?? bench.broker]
      const answers = await Promise.all(
        Array.from({ length: 200 }, (_, i) => brokers[i % 2]?.enqueue(newJob(), terms)),
      )
      expect(answers.filter((answer) => answer?.outcome === 'enqueued')).toHaveLength(20)
      expect(answers.filter((answer) => answer?.outcome === 'full')).toHaveLength(180)
      expect(await bench.broker.depth()).toMatchObject({ depth: 20 })
      if (brokers[1] !== bench.broker) await brokers[1]?.close()
    })

    it('keeps one identity from filling the queue', async () => {
      const terms = { ...roomy, maxDepth: 10, maxDepthPerIdentity: 2 }
      await bench.enqueued(newJob(), terms)
      await bench.enqueued(newJob(), terms)
      expect(await bench.broker.enqueue(newJob(), terms)).toEqual({
        outcome: 'full',
        bound: 'identity',
      })
      const other = await bench.enqueued(newJob({ identity: 'user:2' }), terms)
      bench.settling({ outcome: 'done', result: null })
      await bench.reaches(other.id, 'done')
      await until('there is room', async () => (await bench.broker.depth()).depth === 0)
      await bench.enqueued(newJob(), terms)
    })

    it('has one job for one idempotency key of one identity', async () => {
      const idempotency = { key: 'order-1', fingerprint: 'a' }
      const terms = { ...roomy, idempotency }
      const job = await bench.enqueued(newJob(), terms)
      const known = { outcome: 'known', id: job.id }
      expect(await bench.broker.enqueue(newJob(), terms)).toEqual(known)
      const otherPayload = { ...roomy, idempotency: { ...idempotency, fingerprint: 'b' } }
      expect(await bench.broker.enqueue(newJob(), otherPayload)).toEqual({ outcome: 'mismatch' })
      await bench.enqueued(newJob({ identity: 'user:2' }), terms)
      bench.settling({ outcome: 'done', result: null })
      await bench.reaches(job.id, 'done')
      expect(await bench.broker.enqueue(newJob(), terms)).toEqual(known)
    })

    it('finds the job of an idempotency key, of its identity alone', async () => {
      const terms = { ...roomy, idempotency: { key: 'order-1', fingerprint: 'a' } }
      const { broker } = bench
      expect(await broker.find('user:1', 'order-1')).toBeUndefined()
      const job = await bench.enqueued(newJob(), terms)
      const other = driver.twin?.(broker) ?? broker
      expect(await other.find('user:1', 'order-1')).toBe(job.id)
      expect(await other.find('user:1', 'order-2')).toBeUndefined()
      expect(await other.find('user:2', 'order-1')).toBeUndefined()
      if (other !== broker) await other.close()
      bench.settling({ outcome: 'done', result: null })
      await bench.reaches(job.id, 'done')
      expect(await broker.find('user:1', 'order-1')).toBe(job.id)
    })

    it('lets one of many through that bring one idempotency key at once', async () => {
      const terms = { ...roomy, idempotency: { key: 'order-1', fingerprint: 'a' } }
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => bench.broker.enqueue(newJob(), terms)),
      )
      const ids = answers.map((answer) => ('id' in answer ? answer.id : answer.outcome))
      expect(new Set(ids).size).toBe(1)
      expect(answers.filter(({ outcome }) => outcome === 'enqueued')).toHaveLength(1)
      expect(await bench.broker.depth()).toMatchObject({ depth: 1 })
    })

    it('tells how full it is, how old the oldest job, and how fast jobs come and go', async () => {
      expect(await bench.broker.depth()).toEqual({
        depth: 0,
        running: 0,
        dead: 0,
        oldestMs: 0,
        inPerSecond: 0,
        outPerSecond: 0,
      })
      await bench.enqueued(newJob({ enqueuedAt: Date.now() - 5_000 }))
      const last = await bench.enqueued()
      expect((await bench.broker.depth()).oldestMs).toBeGreaterThanOrEqual(5_000)
      bench.settling({ outcome: 'done', result: null })
      await bench.reaches(last.id, 'done')
      const { inPerSecond, outPerSecond } = await bench.broker.depth()
      expect(inPerSecond).toBeGreaterThan(0)
      expect(outPerSecond).toBeGreaterThan(0)
    })

    it('takes no job any more once a worker is closing, and waits for those it has', async () => {
      const first = await bench.enqueued()
      let finish: (() => void) | undefined
      const worker = bench.work(async () => {
        await new Promise<void>((resolve) => {
          finish = resolve
        })
        return { outcome: 'done', result: null }
      })
      await bench.reaches(first.id, 'running')
      await until('it runs', async () => finish !== undefined)
      const closing = worker.close()
      const second = await bench.enqueued()
      finish?.()
      await closing
      expect(await bench.broker.status(first.id)).toMatchObject({ state: 'done' })
      expect(await bench.broker.status(second.id)).toMatchObject({ state: 'pending' })
    })

    it('refuses whatever comes after it is closed', async () => {
      await bench.broker.close()
      await expect(bench.broker.enqueue(newJob(), roomy)).rejects.toMatchObject({
        code: 'SLUICE_BROKER_CLOSED',
      })
    })
  })
}
