import { like, same } from '../assertions.ts'
import { type BrokerCases, done, newJob, roomy } from './broker-bench.ts'

const idempotency = { key: 'order-1', fingerprint: 'a' }

/** Tests for the admission of jobs: bounds of the queue, and idempotency keys. */
export const bounds: BrokerCases = {
  async 'never accepts more jobs than its bound, even concurrently'(bench) {
    const terms = { ...roomy, maxDepth: 20 }
    const brokers = [bench.broker, await bench.twin()]
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, i) => brokers[i % 2]?.enqueue(newJob(), terms)),
    )
    const count = (outcome: string): number =>
      answers.filter((answer) => answer?.outcome === outcome).length
    same([count('enqueued'), count('full')], [20, 180], 'accepted and rejected jobs')
    like(await bench.broker.depth(), { depth: 20 }, 'the depth')
  },

  async 'limits how many jobs one identity may queue'(bench) {
    const terms = { ...roomy, maxDepth: 10, maxDepthPerIdentity: 2 }
    await bench.enqueued(newJob(), terms)
    await bench.enqueued(newJob(), terms)
    const refused = await bench.broker.enqueue(newJob(), terms)
    same(refused, { outcome: 'full', bound: 'identity' }, 'a third job, of two per identity')
    const other = await bench.enqueued(newJob({ identity: 'user:2' }), terms)
    bench.settling(done)
    await bench.reaches(other.id, 'done')
    await bench.until('all jobs have ended', async () => (await bench.broker.depth()).depth === 0)
    await bench.enqueued(newJob(), terms)
  },

  async 'creates one job per idempotency key and identity'(bench) {
    const terms = { ...roomy, idempotency }
    const job = await bench.enqueued(newJob(), terms)
    const known = { outcome: 'known', id: job.id }
    same(await bench.broker.enqueue(newJob(), terms), known, 'the same key again')
    const otherPayload = { ...roomy, idempotency: { ...idempotency, fingerprint: 'b' } }
    const mismatch = await bench.broker.enqueue(newJob(), otherPayload)
    same(mismatch, { outcome: 'mismatch' }, 'the same key for another fingerprint')
    await bench.enqueued(newJob({ identity: 'user:2' }), terms)
    bench.settling(done)
    await bench.reaches(job.id, 'done')
    same(await bench.broker.enqueue(newJob(), terms), known, 'the same key after the end')
  },

  async 'finds the job of an idempotency key, only for its identity'(bench) {
    const { broker } = bench
    const promise = 'the job of an idempotency key'
    same(await broker.find('user:1', 'order-1'), undefined, promise)
    const job = await bench.enqueued(newJob(), { ...roomy, idempotency })
    const twin = await bench.twin()
    same(await twin.find('user:1', 'order-1'), job.id, promise)
    same(await twin.find('user:1', 'order-2'), undefined, 'the job of another key')
    same(await twin.find('user:2', 'order-1'), undefined, 'the job of the key of another identity')
    bench.settling(done)
    await bench.reaches(job.id, 'done')
    same(await broker.find('user:1', 'order-1'), job.id, `${promise}, after the end`)
  },

  async 'accepts one of many concurrent jobs with the same idempotency key'(bench) {
    const terms = { ...roomy, idempotency }
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => bench.broker.enqueue(newJob(), terms)),
    )
    const ids = new Set(answers.map((answer) => ('id' in answer ? answer.id : answer.outcome)))
    const enqueued = answers.filter(({ outcome }) => outcome === 'enqueued')
    same([ids.size, enqueued.length], [1, 1], 'distinct ids, and enqueued jobs')
    like(await bench.broker.depth(), { depth: 1 }, 'the depth')
  },

  async 'frees an idempotency key after the retention'(bench) {
    const terms = { ...roomy, retentionMs: 500, idempotency }
    const job = await bench.enqueued(newJob(), terms)
    bench.settling(done)
    await bench.reaches(job.id, 'done')
    await bench.until('the key is free', async () => {
      return (await bench.broker.enqueue(newJob(), terms)).outcome === 'enqueued'
    })
  },
}
