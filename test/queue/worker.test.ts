import { memoryStore } from '@sluice/core'
import {
  type Broker,
  createWorker,
  type JobHandler,
  type JobStatus,
  memoryBroker,
  PermanentError,
  type QueueEvent,
  type Worker,
  type WorkerOptions,
} from '@sluice/queue'
import { redisStore } from '@sluice/redis'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { mostWithin } from '../support/most-within.ts'
import { goneStore } from '../support/store-through.ts'
import { fakeTime, newJob, roomy, untilAborted } from './broker-bench.ts'

const throwing = () => {
  throw Object.create(null)
}
/** A handler that throws whatever it is asked. */
const hostile = new Proxy({}, { get: () => throwing })
const hostileKeys = new Proxy({}, { ownKeys: throwing })

describe('a worker', () => {
  let broker: Broker
  let events: QueueEvent[]
  const workers: Worker[] = []

  fakeTime()

  beforeEach(() => {
    broker = memoryBroker()
    events = []
  })
  afterEach(async () => {
    const closing = workers.splice(0).map((worker) => worker.close({ grace: 1 }))
    await vi.advanceTimersByTimeAsync(5_000)
    await Promise.all(closing)
  })

  function start(options: Partial<WorkerOptions> = {}): Worker {
    const worker = createWorker({
      broker,
      handler: () => 'done',
      observers: { onEvent: (event) => events.push(event) },
      ...options,
    })
    workers.push(worker)
    return worker
  }

  async function enqueue(fields = {}): Promise<string> {
    const job = newJob(fields)
    await broker.enqueue(job, roomy)
    return job.id
  }

  /** What became of a job, some time later. */
  async function after(ms: number, id: string): Promise<JobStatus | undefined> {
    await vi.advanceTimersByTimeAsync(ms)
    return broker.status(id)
  }

  /** Takes a second. */
  const finished = () => new Promise((resolve) => setTimeout(() => resolve('finished'), 1_000))

  const typesOf = (id: string): string[] =>
    events.flatMap((event) => ('id' in event && event.id === id ? [event.type] : []))

  it('reports how long a job waited and ran', async () => {
    const id = await enqueue()
    await vi.advanceTimersByTimeAsync(2_000)
    start({ handler: () => new Promise((resolve) => setTimeout(resolve, 300)) })
    await after(1_000, id)
    expect(events).toMatchObject([
      { queue: 'jobs', type: 'started', id, attempt: 1, waitMs: 2_000 },
      { queue: 'jobs', type: 'done', id, attempt: 1, runMs: 300 },
    ])
  })

  it('never starts more runs than the limit in any window, whoever runs them, retries included', async () => {
    const cases = fc.record({
      limit: fc.integer({ min: 1, max: 5 }),
      window: fc.integer({ min: 50, max: 500 }),
      jobs: fc.integer({ min: 1, max: 30 }),
      concurrency: fc.integer({ min: 1, max: 8 }),
      failing: fc.integer({ min: 1, max: 5 }),
    })
    const property = fc.asyncProperty(cases, async ({ jobs, failing, ...rate }) => {
      broker = memoryBroker()
      const starts: number[] = []
      const worker = start({
        ...{ ...rate, backoff: { base: 10, max: 100 }, attempts: 3 },
        handler: () => {
          starts.push(Date.now())
          if (starts.length % failing === 0) throw new Error('now and then')
        },
      })
      for (let i = 0; i < jobs; i += 1) await enqueue()
      await vi.advanceTimersByTimeAsync(60_000)
      await worker.close()
      expect(mostWithin(starts, rate.window)).toBeLessThanOrEqual(rate.limit)
      expect((await broker.depth()).depth).toBe(0)
      expect(starts.length).toBeGreaterThanOrEqual(jobs)
    })
    await fc.assert(property, { numRuns: 30 })
  })

  it('retries a failed job with full jitter, then turns it into a dead letter', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.999_999)
    const id = await enqueue()
    start({
      attempts: 4,
      backoff: { base: '1s', max: '3s' },
      handler: () => {
        throw new Error('it is down')
      },
    })
    const failed = { state: 'failed', error: 'it is down', attempts: 4 }
    expect(await after(20_000, id)).toMatchObject(failed)
    const delaysOf = (job: string) =>
      events.flatMap((of) => (of.type === 'retried' && of.id === job ? [of.delayMs] : []))
    expect(delaysOf(id)).toEqual([999, 1_999, 2_999])
    expect(typesOf(id).at(-1)).toBe('dead')
    vi.spyOn(Math, 'random').mockReturnValue(0)
    const spread = await enqueue()
    await after(100, spread)
    expect(delaysOf(spread)).toEqual([0, 0, 0])
  })

  it('turns a permanent failure into a dead letter immediately', async () => {
    const id = await enqueue()
    start({ handler: () => Promise.reject(new PermanentError('no such user')) })
    expect(await after(10, id)).toMatchObject({ state: 'failed', error: 'no such user' })
    expect(typesOf(id)).toEqual(['started', 'dead'])
  })

  const returns = (result: unknown) => async () => result
  const throws = (thrown: unknown) => () => Promise.reject(thrown)
  const unwritable = 'the thrown value cannot be converted to a string'

  it.each<[string, () => Promise<unknown>, string | RegExp]>([
    ['a result that JSON cannot carry', returns({ big: 1n }), /^the result .* as JSON: big is/],
    ['a hostile Proxy', returns(hostileKeys), /cannot be converted to a string/],
    ['a result that is too long', returns('x'.repeat(200)), /longer than maxResultBytes \(100\)/],
    ['what cannot be converted to a string, thrown', throws(Object.create(null)), unwritable],
    ['nothing, thrown', throws(undefined), 'undefined'],
    ['a hostile Proxy, thrown', throws(new Proxy({}, hostile)), unwritable],
    ['a Proxy of an error, thrown', throws(new Proxy(new Error(), hostile)), unwritable],
    ['an error without end', throws(new Error('x'.repeat(5_000))), `${'x'.repeat(1_023)}…`],
    ['an error without a message', throws(Object.assign(new Error(), { message: 1n })), '1'],
  ])('keeps a text of bounded length of what a run fails by: %s', async (_what, handler, error) => {
    const id = await enqueue()
    start({ handler, attempts: 1, maxResultBytes: 100 })
    expect(await after(10, id)).toMatchObject({
      state: 'failed',
      error: typeof error === 'string' ? error : expect.stringMatching(error),
    })
  })

  it('aborts a run at its timeout, and counts it as failed', async () => {
    const id = await enqueue()
    const signals: AbortSignal[] = []
    const handler: JobHandler = (_job, { signal }) => {
      signals.push(signal)
      return new Promise(() => undefined)
    }
    start({ timeout: '2s', attempts: 1, handler })
    expect(await after(1_999, id)).toMatchObject({ state: 'running' })
    expect(await after(10, id)).toMatchObject({ state: 'failed', error: /longer than 2000 ms/ })
    expect(signals[0]?.reason).toMatchObject({ name: 'TimeoutError' })
  })

  it('does not run an expired job', async () => {
    const handler = vi.fn()
    const id = await enqueue({ expiresAt: Date.now() + 1_000 })
    await vi.advanceTimersByTimeAsync(1_000)
    start({ handler })
    expect(await after(10, id)).toMatchObject({ state: 'expired' })
    expect(handler).not.toHaveBeenCalled()
    expect(events).toMatchObject([{ type: 'expired', id, waitMs: 1_000 }])
  })

  it('runs a job again whose next attempt falls after it expires', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.999_999)
    const handler = vi.fn<JobHandler>().mockRejectedValueOnce(new Error('it is down'))
    const id = await enqueue({ expiresAt: Date.now() + 500 })
    start({ handler, attempts: 2, backoff: { base: '1s', max: '1s' } })
    expect(await after(2_000, id)).toMatchObject({ state: 'done', attempts: 2 })
  })

  it('looks again after a job has waited for the rate', async () => {
    start({ limit: 1, window: '10s' })
    const first = await enqueue()
    const second = await enqueue({ expiresAt: Date.now() + 5_000 })
    expect(await after(10, first)).toMatchObject({ state: 'done' })
    expect(await after(10_000, second)).toMatchObject({ state: 'expired' })
  })

  it('aborts the signal of a cancelled job, and lets a handler that ignores it finish', async () => {
    const obeys = await enqueue({ payload: 'obeys' })
    const goesOn = await enqueue({ payload: 'goes on' })
    start({
      handler: ({ payload }, { signal }) =>
        payload === 'obeys' ? untilAborted(signal) : finished(),
    })
    await vi.advanceTimersByTimeAsync(10)
    await broker.cancel(obeys)
    await broker.cancel(goesOn)
    expect(await after(2_000, obeys)).toMatchObject({ state: 'cancelled' })
    expect(await broker.status(goesOn)).toMatchObject({ state: 'done', result: 'finished' })
    expect(typesOf(obeys)).toEqual(['started', 'cancelled'])
  })

  it('does not start a job that is cancelled while it waits for the rate', async () => {
    const handler = vi.fn()
    const worker = start({ limit: 1, window: '10s', handler })
    await enqueue()
    const waits = await enqueue()
    await vi.advanceTimersByTimeAsync(10)
    expect(worker.waiting).toBe(1)
    await broker.cancel(waits)
    expect(await after(10, waits)).toMatchObject({ state: 'cancelled' })
    await vi.advanceTimersByTimeAsync(20_000)
    expect(handler).toHaveBeenCalledTimes(1)
  })

  it('waits for what runs when it closes, and returns what waits for the rate', async () => {
    const worker = start({ limit: 1, window: '10s', handler: finished })
    const runs = await enqueue()
    const waits = await enqueue()
    await vi.advanceTimersByTimeAsync(10)
    expect(worker.running).toBe(1)
    const closed = worker.close()
    await vi.advanceTimersByTimeAsync(1_000)
    await closed
    expect(await broker.status(runs)).toMatchObject({ state: 'done', result: 'finished' })
    expect(await broker.status(waits)).toMatchObject({ state: 'pending', attempts: 0 })
    expect(typesOf(waits)).toEqual(['returned'])
  })

  it('returns what does not end in time, whether it listens or not', async () => {
    const worker = start({
      handler: ({ payload }, { signal }) =>
        payload === 'listens' ? untilAborted(signal) : new Promise(() => undefined),
    })
    const listens = await enqueue({ payload: 'listens' })
    const ignores = await enqueue({ payload: 'ignores' })
    await vi.advanceTimersByTimeAsync(10)
    const closed = worker.close({ grace: '3s' })
    await vi.advanceTimersByTimeAsync(3_010)
    expect(await broker.status(listens)).toMatchObject({ state: 'pending' })
    expect(await broker.status(ignores)).toMatchObject({ state: 'running' })
    await vi.advanceTimersByTimeAsync(1_000)
    await closed
    expect(await broker.status(ignores)).toMatchObject({ state: 'pending', attempts: 0 })
  })

  it('leaves no timer behind when it closes while the store of its rate is asked', async () => {
    let answer: (outcomes: never) => void = () => undefined
    const asked = vi.fn(
      () =>
        new Promise<never>((resolve) => {
          answer = resolve
        }),
    )
    const worker = start({ limit: 1, window: '1h', store: { ...memoryStore(), apply: asked } })
    await enqueue()
    await vi.advanceTimersByTimeAsync(10)
    expect(asked).toHaveBeenCalledTimes(1)
    await worker.close({ grace: 1 })
    const [check] = (asked.mock.calls as unknown as [[string, { policy: object }[]]])[0]?.[1] ?? []
    const denied = {
      ...{ policy: check?.policy, allowed: false, limit: 1, remaining: 0 },
      ...{ resetMs: 3_600_000, retryAfterMs: 3_600_000 },
    }
    answer([denied] as never)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('starts nothing while the store of its rate does not decide', async () => {
    const handler = vi.fn()
    const store = goneStore(memoryStore())
    vi.spyOn(console, 'warn').mockReturnValue()
    start({ limit: 1, window: '1s', store, handler })
    await enqueue()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(handler).not.toHaveBeenCalled()
  })

  it.each([
    [{ handler: 'render' }, /^handler must be a function of the job/],
    [{ broker: {} }, /^broker must be a broker/],
    [{ limit: 5 }, /^window must be/],
    [{ limit: 0, window: '1s' }, /^limit must be a whole number from 1/],
    [{ concurrency: 0 }, /^concurrency must be/],
    [{ attempts: 1.5 }, /^attempts must be/],
    [{ backoff: { base: '10m' } }, /^backoff\.base must be at most backoff\.max/],
    [{ lease: '999ms' }, /^lease must be at least '1s'/],
    [{ timeout: '60d' }, /^timeout must be at most '24d'/],
    [{ observers: { onEvent: true } }, /^observers\.onEvent must be a function/],
    [{ rate: 5 }, /there is no option 'rate'/],
  ])('rejects invalid options: %j', (wrong, message) => {
    const options = { broker, handler: () => null, ...wrong }
    expect(() => createWorker(options as unknown as WorkerOptions)).toThrow(message)
  })

  it('refuses a rate without a store on a broker that processes share', () => {
    const shared = { ...memoryBroker(), isShared: true, enqueue: vi.fn(), work: vi.fn() }
    const options = { broker: shared, handler: () => null, limit: 5, window: '1s' } as const
    expect(() => createWorker(options)).toThrow(/^store is required with limit/)
    const redis = new Redis({ lazyConnect: true })
    expect(() => createWorker({ ...options, store: redisStore(redis) })).not.toThrow()
    redis.disconnect()
  })
})
