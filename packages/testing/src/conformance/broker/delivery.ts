import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import type { Delivery } from '@sluice/queue'
import { like, same } from '../assertions.ts'
import { type BrokerCases, done, newJob, roomy } from './broker-bench.ts'

/** Tests for the runs of jobs, and their outcomes. */
export const delivery: BrokerCases = {
  async 'runs a job once, and keeps its outcome'(bench) {
    const job = await bench.enqueued()
    const { id, identity, enqueuedAt } = job
    const known = { id, identity, enqueuedAt }
    await bench.has({ ...known, state: 'pending', attempts: 0 }, 'the status of a new job')
    const runs = bench.settling({ outcome: 'done', result: { pages: 3 } })
    await bench.reaches(id, 'done')
    like(runs, [{ ...job, attempt: 1 }], 'the runs')
    const status = await bench.broker.status(id)
    like(status, { attempts: 1, result: { pages: 3 } }, 'the status of a job that is done')
  },

  async 'never reports a job as done without its result, nor a cancelled job as done'(bench) {
    const torn: unknown[] = []
    bench.work(async ({ payload }) => {
      await setImmediate()
      return payload ? { outcome: 'done', result: 'there' } : { outcome: 'cancelled' }
    }, 1)
    for (let i = 0; i < 30; i += 1) {
      const { id } = await bench.enqueued(newJob({ payload: i % 2 }))
      const watch = (): Promise<void> =>
        bench.until('the job has ended', async () => {
          await setImmediate()
          const { state, result } = (await bench.broker.status(id)) ?? {}
          const isWhole = state !== 'done' || (i % 2 === 1 && result === 'there')
          if (!isWhole) torn.push({ state, result })
          return state === 'done' || state === 'cancelled'
        })
      await Promise.all([watch(), watch(), watch()])
    }
    same(torn, [], 'states that contradict their result')
  },

  async 'runs jobs in order, up to its concurrency'(bench) {
    const ids: string[] = []
    for (let i = 0; i < 6; i += 1) ids.push((await bench.enqueued(newJob({ payload: i }))).id)
    const started: unknown[] = []
    let [running, maxRunning] = [0, 0]
    bench.work(async ({ payload }) => {
      started.push(payload)
      running += 1
      maxRunning = Math.max(maxRunning, running)
      await sleep(20)
      running -= 1
      return done
    }, 2)
    for (const id of ids) await bench.reaches(id, 'done')
    same(started, [0, 1, 2, 3, 4, 5], 'the order of the runs')
    same(maxRunning, 2, 'runs at once, with concurrency 2')
  },

  async 'runs a job again after the delay, and counts its attempts'(bench) {
    const job = await bench.enqueued()
    const runs = bench.settling(
      { outcome: 'retry', delayMs: 30, error: 'not yet' },
      { outcome: 'retry', delayMs: 0, error: 'not yet' },
      { outcome: 'done', result: 'at last' },
    )
    await bench.reaches(job.id, 'done')
    const attempts = runs.map(({ attempt }) => attempt)
    same(attempts, [1, 2, 3], 'attempts of a job that is retried')
    like(await bench.broker.depth(), { depth: 0 }, 'the depth after the end')
  },

  async 'counts no attempt for a returned job'(bench) {
    const job = await bench.enqueued()
    const runs = bench.settling({ outcome: 'returned' }, done)
    await bench.reaches(job.id, 'done')
    const attempts = runs.map(({ attempt }) => attempt)
    same(attempts, [1, 1], 'attempts of a job that is returned')
  },

  async 'delays a postponed job, and counts no attempt'(bench) {
    const { id } = await bench.enqueued()
    const runs: { attempt: number; at: number }[] = []
    bench.work(async ({ attempt }) => {
      runs.push({ attempt, at: performance.now() })
      return runs.length === 1 ? { outcome: 'postponed', delayMs: 100 } : done
    })
    await bench.reaches(id, 'done')
    const attempts = runs.map(({ attempt }) => attempt)
    same(attempts, [1, 1], 'attempts of a job that is postponed')
    const [first = 0, second = 0] = runs.map(({ at }) => at)
    // A timer may fire slightly early.
    same(second - first > 95, true, 'a job postponed by 100 ms does not run earlier')
  },

  async 'knows whether a job was ever started'(bench) {
    const job = await bench.enqueued()
    const seen: Pick<Delivery, 'hasBegun' | 'interrupted'>[] = []
    bench.work(async (_job, _signal, { hasBegun, interrupted, begin }) => {
      seen.push({ hasBegun, interrupted })
      if (seen.length === 1) return { outcome: 'returned' }
      await begin()
      return seen.length === 2 ? { outcome: 'retry', delayMs: 0, error: 'not yet' } : done
    })
    await bench.reaches(job.id, 'done')
    const expected = [false, false, true].map((hasBegun) => ({ hasBegun, interrupted: 0 }))
    same(seen, expected, 'the earlier runs reported by a delivery')
  },

  async 'reports an expired job'(bench) {
    const job = await bench.enqueued()
    bench.settling({ outcome: 'expired' })
    await bench.reaches(job.id, 'expired')
  },

  async 'turns a job whose run rejects into a dead letter'(bench) {
    const { id } = await bench.enqueued()
    bench.work(() => Promise.reject(Object.create(null)))
    await bench.reaches(id, 'failed')
    like(await bench.broker.depth(), { depth: 0, dead: 1 }, 'the depth')
  },

  async 'takes no jobs while a worker closes, and waits for running ones'(bench) {
    const first = await bench.enqueued()
    const finish: (() => void)[] = []
    const worker = bench.work(async () => {
      await new Promise<void>((resolve) => finish.push(resolve))
      return done
    })
    await bench.reaches(first.id, 'running')
    await bench.until('the job runs', () => finish.length === 1)
    const closing = worker.close()
    const second = await bench.enqueued()
    finish[0]?.()
    await closing
    await bench.has({ id: first.id, state: 'done' }, 'the job that ran while the worker closed')
    await bench.has({ id: second.id, state: 'pending' }, 'a job that came after')
  },

  async 'reports its depth, the age of the oldest job, and the rates in and out'(bench) {
    const empty = { depth: 0, running: 0, dead: 0, oldestMs: 0, inPerSecond: 0, outPerSecond: 0 }
    same(await bench.broker.depth(), empty, 'the gauges of an empty queue')
    await bench.enqueued(newJob({ enqueuedAt: Date.now() - 5_000 }))
    const last = await bench.enqueued()
    const { oldestMs } = await bench.broker.depth()
    same(oldestMs >= 5_000, true, 'oldestMs is the age of the oldest job')
    bench.settling(done)
    await bench.reaches(last.id, 'done')
    const { inPerSecond, outPerSecond } = await bench.broker.depth()
    same([inPerSecond > 0, outPerSecond > 0], [true, true], 'the rates after two jobs')
  },

  async 'rejects calls after it is closed, with SLUICE_BROKER_CLOSED'(bench) {
    await bench.broker.close()
    const outcome = await bench.broker.enqueue(newJob(), roomy).then(
      () => 'enqueued',
      (error: unknown) => error,
    )
    like(outcome, { code: 'SLUICE_BROKER_CLOSED' }, 'a call after close')
  },
}
