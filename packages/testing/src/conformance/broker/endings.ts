import { setTimeout as sleep } from 'node:timers/promises'
import { like, same } from '../assertions.ts'
import { type BrokerCases, done, newJob, roomy } from './broker-bench.ts'

/** Tests for dead letters, cancelled jobs, and their records. */
export const endings: BrokerCases = {
  async 'keeps dead letters, newest first, and retries one on demand'(bench) {
    const { broker } = bench
    const first = await bench.enqueued()
    const runs = bench.settling(
      { outcome: 'dead', error: 'no such page' },
      { outcome: 'dead', error: 'no such page either' },
      { outcome: 'done', result: 'found' },
    )
    await bench.reaches(first.id, 'failed')
    const second = await bench.enqueued()
    await bench.reaches(second.id, 'failed')
    like(await broker.depth(), { depth: 0, dead: 2 }, 'the depth')
    like(
      await broker.deadLetters({ offset: 0, limit: 10 }),
      [
        { id: second.id, state: 'failed', error: 'no such page either', attempts: 1 },
        { id: first.id, error: 'no such page' },
      ],
      'the dead letters',
    )
    const page = await broker.deadLetters({ offset: 1, limit: 1 })
    like(page, [{ id: first.id }], 'the second page of dead letters')
    const retries = await Promise.all([1, 2].map(() => broker.retry(first.id)))
    same(retries.sort(), [false, true], 'a dead letter retried twice concurrently')
    await bench.reaches(first.id, 'done')
    const again = { id: first.id, attempt: 1, payload: { page: 1 } }
    like(runs.at(-1), again, 'the run of a retried dead letter')
    same(await broker.retry(first.id), false, 'a finished job is not a dead letter')
    like(await broker.depth(), { depth: 0, dead: 1 }, 'the depth')
  },

  async 'deletes a dead letter and its idempotency key, and nothing else'(bench) {
    const { broker } = bench
    const terms = { ...roomy, idempotency: { key: 'order-1', fingerprint: 'a' } }
    const job = await bench.enqueued(newJob(), terms)
    same(await broker.forget(job.id), false, 'a waiting job is not a dead letter')
    bench.settling({ outcome: 'dead', error: 'no' }, done)
    await bench.reaches(job.id, 'failed')
    const answers = await Promise.all([1, 2].map(() => broker.forget(job.id)))
    same(answers.sort(), [false, true], 'a dead letter deleted twice concurrently')
    same(await broker.status(job.id), undefined, 'the status of a forgotten dead letter')
    same(await broker.deadLetters({ offset: 0, limit: 10 }), [], 'the dead letters')
    const next = await bench.enqueued(newJob(), terms)
    await bench.reaches(next.id, 'done')
    same(await broker.forget(next.id), false, 'a finished job is not a dead letter')
    same(await broker.forget('nobody'), false, 'an unknown job')
  },

  async 'deletes an outcome after the retention'(bench) {
    const job = await bench.enqueued(newJob(), { ...roomy, retentionMs: 500 })
    bench.settling(done)
    await bench.reaches(job.id, 'done')
    await bench.until('the outcome is forgotten', async () => {
      return (await bench.broker.status(job.id)) === undefined
    })
  },

  async 'reports an unknown job as unknown'(bench) {
    for (const id of ['nobody', 'wait', 'meta', 'events', '__proto__', newJob().id]) {
      same(await bench.broker.status(id), undefined, `the status of ${id}`)
    }
    same(await bench.broker.cancel('nobody'), 'unknown', 'cancelling an unknown job')
    same(await bench.broker.retry('nobody'), false, 'retrying an unknown job')
  },

  async 'does not run a job that was cancelled while waiting'(bench) {
    const { broker } = bench
    const job = await bench.enqueued()
    same(await broker.cancel(job.id), 'cancelled', 'a job that waits')
    same(await broker.cancel(job.id), 'cancelled', 'a job cancelled earlier')
    const status = { id: job.id, state: 'cancelled', identity: 'user:1' } as const
    await bench.has(status, 'the status of a cancelled job')
    like(await broker.depth(), { depth: 0 }, 'the depth')
    const runs = bench.settling(done)
    const next = await bench.enqueued()
    await bench.reaches(next.id, 'done')
    const ids = runs.map(({ id }) => id)
    same(ids, [next.id], 'the jobs that ran')
    same(await broker.cancel(next.id), 'finished', 'a job that is done')
  },

  async 'aborts the run of a cancelled job'(bench) {
    const { broker } = bench
    const job = await bench.enqueued()
    bench.work(async (_job, signal) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      return { outcome: 'cancelled' }
    })
    await bench.reaches(job.id, 'running')
    like(await broker.depth(), { depth: 1, running: 1 }, 'the depth while a job runs')
    same(await broker.cancel(job.id), 'cancelling', 'a job that runs')
    await bench.reaches(job.id, 'cancelled')
    like(await broker.depth(), { depth: 0 }, 'the depth after the end')
  },

  async 'either cancels a job or reports that it is too late'(bench) {
    const ran = new Set<string>()
    bench.work(async ({ id }) => {
      ran.add(id)
      return done
    })
    for (let i = 0; i < 20; i += 1) {
      const { id } = await bench.enqueued()
      await sleep(i % 4)
      const answer = await bench.broker.cancel(id)
      let state: string | undefined
      await bench.until('the job has ended', async () => {
        state = (await bench.broker.status(id))?.state
        return state === 'done' || state === 'cancelled'
      })
      if (answer === 'cancelled') {
        same([state, ran.has(id)], ['cancelled', false], 'a cancelled job, and whether it ran')
      }
      if (answer === 'finished') same(state, 'done', 'a job that could no longer be cancelled')
    }
  },
}
