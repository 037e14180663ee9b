import type { Broker, BrokerWorker, Job, NewJob, RunJob, Settlement } from '@sluice/queue'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { until } from '../support/until.ts'
import type { BrokerDriver } from './broker-drivers.ts'
import { newJob, roomy } from './new-job.ts'

/** What every broker must do. */
export function describeBroker(driver: BrokerDriver): void {
  describe(`a broker: ${driver.name}`, () => {
    let broker: Broker
    const workers: BrokerWorker[] = []

    beforeAll(async () => driver.start?.())
    afterAll(async () => driver.stop?.())
    beforeEach(() => {
      broker = driver.make()
    })
    afterEach(async () => {
      await Promise.all(workers.splice(0).map((worker) => worker.close()))
      await broker.close()
    })

    function work(run: RunJob, concurrency = 5): BrokerWorker {
      const options = { concurrency, leaseMs: 5_000, onStalled: () => undefined }
      const worker = broker.work(run, options)
      workers.push(worker)
      return worker
    }

    /** Runs every job by giving the settlements one after the other, the last one again and again. */
    function settling(...settlements: Settlement[]): Job[] {
      const runs: Job[] = []
      work(async (job) => {
        runs.push(job)
        return settlements[Math.min(runs.length, settlements.length) - 1] ?? { outcome: 'returned' }
      })
      return runs
    }

    async function enqueued(job = newJob(), terms = roomy): Promise<NewJob> {
      expect(await broker.enqueue(job, terms)).toEqual({ outcome: 'enqueued', id: job.id })
      return job
    }

    const reaches = (id: string, state: string): Promise<void> =>
      until(`${id} is ${state}`, async () => (await broker.status(id))?.state === state)

    it('runs a job once, and keeps what it came to', async () => {
      const job = await enqueued()
      expect(await broker.status(job.id)).toMatchObject({
        id: job.id,
        identity: 'user:1',
        state: 'pending',
        enqueuedAt: job.enqueuedAt,
        attempts: 0,
      })
      const runs = settling({ outcome: 'done', result: { pages: 3 } })
      await reaches(job.id, 'done')
      expect(runs).toMatchObject([{ ...job, attempt: 1 }])
      expect(await broker.status(job.id)).toMatchObject({ attempts: 1, result: { pages: 3 } })
    })

    it('runs jobs in their order, as many at once as it may', async () => {
      const jobs: NewJob[] = []
      for (let i = 0; i < 6; i += 1) jobs.push(await enqueued(newJob({ payload: i })))
      const started: unknown[] = []
      let running = 0
      let most = 0
      work(async ({ payload }) => {
        started.push(payload)
        running += 1
        most = Math.max(most, running)
        await new Promise((resolve) => setTimeout(resolve, 20))
        running -= 1
        return { outcome: 'done', result: null }
      }, 2)
      for (const { id } of jobs) await reaches(id, 'done')
      expect(started).toEqual([0, 1, 2, 3, 4, 5])
      expect(most).toBe(2)
    })

    it('runs a job again after the delay, and counts its attempts', async () => {
      const job = await enqueued()
      const runs = settling(
        { outcome: 'retry', delayMs: 30, error: 'not yet' },
        { outcome: 'retry', delayMs: 0, error: 'not yet' },
        { outcome: 'done', result: 'at last' },
      )
      await reaches(job.id, 'done')
      expect(runs.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
      expect(await broker.depth()).toMatchObject({ depth: 0 })
    })

    it('counts no attempt for a job that is returned', async () => {
      const job = await enqueued()
      const runs = settling({ outcome: 'returned' }, { outcome: 'done', result: null })
      await reaches(job.id, 'done')
      expect(runs.map(({ attempt }) => attempt)).toEqual([1, 1])
    })

    it('keeps dead letters, the newest first, and runs one again on demand', async () => {
      const first = await enqueued()
      const runs = settling(
        { outcome: 'dead', error: 'no such page' },
        { outcome: 'dead', error: 'no such page either' },
        { outcome: 'done', result: 'found' },
      )
      await reaches(first.id, 'failed')
      const second = await enqueued()
      await reaches(second.id, 'failed')
      expect(await broker.depth()).toMatchObject({ depth: 0, dead: 2 })
      expect(await broker.deadLetters({ offset: 0, limit: 10 })).toMatchObject([
        { id: second.id, state: 'failed', error: 'no such page either', attempts: 1 },
        { id: first.id, error: 'no such page' },
      ])
      expect(await broker.deadLetters({ offset: 1, limit: 1 })).toMatchObject([{ id: first.id }])
      expect(await broker.retry(first.id)).toBe(true)
      await reaches(first.id, 'done')
      expect(runs.at(-1)).toMatchObject({ id: first.id, attempt: 1 })
      expect(await broker.retry(first.id)).toBe(false)
      expect(await broker.depth()).toMatchObject({ depth: 0, dead: 1 })
    })

    it('keeps as many dead letters as it is told', async () => {
      await broker.close()
      broker = driver.make(2)
      settling({ outcome: 'dead', error: 'no' })
      for (let i = 0; i < 4; i += 1) {
        const { id } = await enqueued()
        await until('it failed', async () => (await broker.status(id))?.state === 'failed')
      }
      expect((await broker.deadLetters({ offset: 0, limit: 10 })).length).toBe(2)
    })

    it('forgets an outcome when its time is over', async () => {
      const job = await enqueued(newJob(), { ...roomy, retentionMs: 1_000 })
      settling({ outcome: 'done', result: null })
      await reaches(job.id, 'done')
      await until('it is forgotten', async () => (await broker.status(job.id)) === undefined)
    })

    it('knows nothing of a job that never was', async () => {
      for (const id of ['nobody', 'wait', 'meta', 'events', newJob().id]) {
        expect(await broker.status(id)).toBeUndefined()
      }
      expect(await broker.cancel('nobody')).toBe('unknown')
      expect(await broker.retry('nobody')).toBe(false)
    })

    it('does not run a job that is cancelled while it waits', async () => {
      const job = await enqueued()
      expect(await broker.cancel(job.id)).toBe('cancelled')
      expect(await broker.cancel(job.id)).toBe('cancelled')
      expect(await broker.status(job.id)).toMatchObject({ state: 'cancelled', identity: 'user:1' })
      expect(await broker.depth()).toMatchObject({ depth: 0 })
      const runs = settling({ outcome: 'done', result: null })
      const next = await enqueued()
      await reaches(next.id, 'done')
      expect(runs.map(({ id }) => id)).toEqual([next.id])
      expect(await broker.cancel(next.id)).toBe('finished')
    })

    it('tells the run of a job that is cancelled', async () => {
      const job = await enqueued()
      work(async (_job, signal) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        return { outcome: 'cancelled' }
      })
      await reaches(job.id, 'running')
      expect(await broker.depth()).toMatchObject({ depth: 1, running: 1 })
      expect(await broker.cancel(job.id)).toBe('cancelling')
      await reaches(job.id, 'cancelled')
      expect(await broker.depth()).toMatchObject({ depth: 0 })
    })

    it('says what expired', async () => {
      const job = await enqueued()
      settling({ outcome: 'expired' })
      await reaches(job.id, 'expired')
    })

    it('never takes more jobs than its bound, whoever asks at once', async () => {
      const terms = { ...roomy, maxDepth: 20 }
      const brokers = [broker, driver.twin?.(broker) ?? broker]
      const answers = await Promise.all(
        Array.from({ length: 200 }, (_, i) => brokers[i % 2]?.enqueue(newJob(), terms)),
      )
      expect(answers.filter((answer) => answer?.outcome === 'enqueued')).toHaveLength(20)
      expect(answers.filter((answer) => answer?.outcome === 'full')).toHaveLength(180)
      expect(await broker.depth()).toMatchObject({ depth: 20 })
      if (brokers[1] !== broker) await brokers[1]?.close()
    })

    it('keeps one identity from filling the queue', async () => {
      const terms = { ...roomy, maxDepth: 10, maxDepthPerIdentity: 2 }
      await enqueued(newJob(), terms)
      await enqueued(newJob(), terms)
      expect(await broker.enqueue(newJob(), terms)).toEqual({ outcome: 'full', bound: 'identity' })
      const other = await enqueued(newJob({ identity: 'user:2' }), terms)
      settling({ outcome: 'done', result: null })
      await reaches(other.id, 'done')
      await until('there is room', async () => (await broker.depth()).depth === 0)
      await enqueued(newJob(), terms)
    })

    it('has one job for one idempotency key of one identity', async () => {
      const idempotency = { key: 'order-1', fingerprint: 'a' }
      const terms = { ...roomy, idempotency }
      const job = await enqueued(newJob(), terms)
      const known = { outcome: 'known', id: job.id }
      expect(await broker.enqueue(newJob(), terms)).toEqual(known)
      const otherPayload = { ...roomy, idempotency: { ...idempotency, fingerprint: 'b' } }
      expect(await broker.enqueue(newJob(), otherPayload)).toEqual({ outcome: 'mismatch' })
      await enqueued(newJob({ identity: 'user:2' }), terms)
      settling({ outcome: 'done', result: null })
      await reaches(job.id, 'done')
      expect(await broker.enqueue(newJob(), terms)).toEqual(known)
    })

    it('finds the job of an idempotency key, of its identity alone', async () => {
      const terms = { ...roomy, idempotency: { key: 'order-1', fingerprint: 'a' } }
      expect(await broker.find('user:1', 'order-1')).toBeUndefined()
      const job = await enqueued(newJob(), terms)
      const other = driver.twin?.(broker) ?? broker
      expect(await other.find('user:1', 'order-1')).toBe(job.id)
      expect(await other.find('user:1', 'order-2')).toBeUndefined()
      expect(await other.find('user:2', 'order-1')).toBeUndefined()
      if (other !== broker) await other.close()
      settling({ outcome: 'done', result: null })
      await reaches(job.id, 'done')
      expect(await broker.find('user:1', 'order-1')).toBe(job.id)
    })

    it('lets one of many through that bring one idempotency key at once', async () => {
      const terms = { ...roomy, idempotency: { key: 'order-1', fingerprint: 'a' } }
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => broker.enqueue(newJob(), terms)),
      )
      const ids = answers.map((answer) => ('id' in answer ? answer.id : answer.outcome))
      expect(new Set(ids).size).toBe(1)
      expect(await broker.depth()).toMatchObject({ depth: 1 })
    })

    it('tells how full it is, how old the oldest job, and how fast jobs come and go', async () => {
      expect(await broker.depth()).toEqual({
        depth: 0,
        running: 0,
        dead: 0,
        oldestMs: 0,
        inPerSecond: 0,
        outPerSecond: 0,
      })
      await enqueued(newJob({ enqueuedAt: Date.now() - 5_000 }))
      const last = await enqueued()
      expect((await broker.depth()).oldestMs).toBeGreaterThanOrEqual(5_000)
      settling({ outcome: 'done', result: null })
      await reaches(last.id, 'done')
      const { inPerSecond, outPerSecond } = await broker.depth()
      expect(inPerSecond).toBeGreaterThan(0)
      expect(outPerSecond).toBeGreaterThan(0)
    })

    it('takes no job any more once a worker is closing, and waits for those it has', async () => {
      const first = await enqueued()
      let finish: (() => void) | undefined
      const worker = work(async () => {
        await new Promise<void>((resolve) => {
          finish = resolve
        })
        return { outcome: 'done', result: null }
      })
      await reaches(first.id, 'running')
      await until('it runs', async () => finish !== undefined)
      const closing = worker.close()
      const second = await enqueued()
      finish?.()
      await closing
      expect(await broker.status(first.id)).toMatchObject({ state: 'done' })
      expect(await broker.status(second.id)).toMatchObject({ state: 'pending' })
    })

    it('refuses whatever comes after it is closed', async () => {
      await broker.close()
      await expect(broker.enqueue(newJob(), roomy)).rejects.toMatchObject({
        code: 'SLUICE_BROKER_CLOSED',
      })
    })
  })
}
