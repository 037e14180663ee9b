import { setTimeout as sleep } from 'node:timers/promises'
import { type Broker, memoryBroker } from '@sluice/queue'
import { brokerConformance } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import { arrayBroker } from '../../examples/array-broker/array-broker.ts'
import { runKit } from './run-kit.ts'

brokerConformance({ ...{ describe, it, waitMs: 15_000 }, open: () => ({ broker: arrayBroker() }) })

/** The methods that a broken broker has in place of those of one that is right. */
type Defect = (right: Broker) => Partial<Broker>
type Run = Parameters<Broker['work']>[0]
type EnqueueTerms = Parameters<Broker['enqueue']>[1]

/** Runs jobs in another way. */
const running =
  (change: (run: Run) => Run): Defect =>
  (right) => ({ work: (run, options) => right.work(change(run), options) })

/** Takes jobs under other terms. */
const under =
  (own: Partial<EnqueueTerms>): Defect =>
  (right) => ({ enqueue: (job, terms) => right.enqueue(job, { ...terms, ...own }) })

const defects: Readonly<Record<string, readonly [Defect, message: RegExp]>> = {
  'loses jobs': [
    () => ({ enqueue: async ({ id }) => ({ outcome: 'enqueued', id }) }),
    /the status of a new job: it should be \{/,
  ],
  'runs each job twice': [
    running((run) => async (...job) => {
      await run(...job)
      return run(...job)
    }),
    /the runs: length should be 1, but is 2/,
  ],
  'drops results': [
    (right) => ({
      async status(id) {
        const status = await right.status(id)
        return status && { ...status, result: undefined }
      },
    }),
    /the status of a job that is done: result should be \{ pages: 3 \}, but is undefined/,
  ],
  'runs one job at a time': [
    (right) => ({ work: (run, options) => right.work(run, { ...options, concurrency: 1 }) }),
    /runs at once, with concurrency 2: expected 2, but got 1/,
  ],
  'counts an attempt for a job that is returned': [
    running((run) => async (...job) => {
      const end = await run(...job)
      return end.outcome === 'returned' ? { outcome: 'retry', delayMs: 0, error: '' } : end
    }),
    /attempts of a job that is returned: expected \[ 1, 1 \], but got \[ 1, 2 \]/,
  ],
  'never retries': [
    running((run) => async (...job) => {
      const end = await run(...job)
      return end.outcome === 'retry' ? { outcome: 'dead', error: '' } : end
    }),
    /not within 300 ms: the job is done/,
  ],
  'looks at its bound, and takes the job later': [
    (right) => ({
      async enqueue(job, terms) {
        const { depth } = await right.depth()
        await sleep(1)
        if (depth >= terms.maxDepth) return { outcome: 'full', bound: 'queue' }
        return right.enqueue(job, { ...terms, maxDepth: 1_000 })
      },
    }),
    /accepted and rejected jobs: expected \[ 20, 180 \], but got \[ 200, 0 \]/,
  ],
  'knows no bound of an identity': [
    under({ maxDepthPerIdentity: 1_000 }),
    /a third job, of two per identity: expected \{ outcome: 'full', bound: 'identity' \}/,
  ],
  'ignores idempotency keys': [
    under({ idempotency: undefined }),
    /the same key again: expected \{ outcome: 'known'/,
  ],
  'shares idempotency keys between identities': [
    (right) => ({ find: (_identity, key) => right.find('user:1', key) }),
    /the job of the key of another identity: expected undefined/,
  ],
  'runs cancelled jobs': [
    () => ({ cancel: async () => 'cancelled' as const }),
    /the status of a cancelled job: state should be 'cancelled', but is 'pending'/,
  ],
  'tells no run that its job was cancelled': [
    running((run) => (job, _, delivery) => run(job, new AbortController().signal, delivery)),
    /not within 300 ms: the job is cancelled/,
  ],
  'has no dead letters': [
    () => ({ deadLetters: async () => [] }),
    /the dead letters: length should be 2, but is 0/,
  ],
  'lists the oldest dead letter first': [
    (right) => ({
      deadLetters: async ({ offset, limit }) =>
        [...(await right.deadLetters({ offset: 0, limit: 99 }))].reverse().slice(offset, limit),
    }),
    /the dead letters: 0\.id should be/,
  ],
  'works on after it is closed': [
    () => ({ close: async () => undefined }),
    /a call after close: it should be \{ code: 'SLUICE_BROKER_CLOSED' \}, but is 'enqueued'/,
  ],
}

describe('the kit for brokers', () => {
  it.each(Object.entries(defects))('catches a broker that %s', async (_, [defect, message]) => {
    const open = () => {
      const right = memoryBroker()
      const broken = defect(right)
      const broker = new Proxy(right, {
        get(target, name) {
          const own: unknown = Reflect.get(broken, name) ?? Reflect.get(target, name)
          return typeof own === 'function' ? own.bind(target) : own
        },
      })
      return { broker, close: () => right.close() }
    }
    const { messages } = await runKit(
      (runner) => brokerConformance({ ...runner, open, waitMs: 300 }),
      message,
    )
    expect(messages).toContainEqual(expect.stringMatching(message))
  })

  it('checks its options', () => {
    const open = () => ({ broker: arrayBroker() })
    expect(() => brokerConformance({ open })).toThrow(/brokerConformance: describe must be/)
    const options = { describe, it, open, opened: open }
    expect(() => brokerConformance(options)).toThrow(/there is no option 'opened'.*'open'/)
    expect(() => brokerConformance({ describe, it, open, waitMs: 0 })).toThrow(
      'waitMs must be a whole number from 1 to 600000, but is 0',
    )
  })
})
