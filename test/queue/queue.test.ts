import {
  type Broker,
  createQueue,
  createWorker,
  memoryBroker,
  type Queue,
  type QueueEvent,
  type QueueOptions,
  type Worker,
} from '@sluice/queue'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

describe('a queue', () => {
  let broker: Broker
  let events: QueueEvent[]
  let worker: Worker | undefined

  beforeEach(() => {
    vi.useFakeTimers({
      toFake: ['Date', 'setTimeout', 'clearTimeout', 'setImmediate', 'performance'],
    })
    broker = memoryBroker()
    events = []
  })
  afterEach(async () => {
    await worker?.close()
    worker = undefined
    vi.useRealTimers()
  })

  function make(options: Partial<QueueOptions> = {}): Queue {
    return createQueue({ broker, onEvent: (event) => events.push(event), ...options })
  }

  async function enqueue(queue: Queue, fields = {}): Promise<string> {
    const result = await queue.enqueue({ identity: 'a', payload: null, ...fields })
    if (result.outcome !== 'enqueued') throw new Error(result.outcome)
    return result.id
  }

  it('gives jobs ids that nobody guesses, and shows each to whom it is of alone', async () => {
    const queue = make()
    const id = await enqueue(queue)
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(await queue.status(id, 'a')).toMatchObject({ id, state: 'pending' })
    expect(await queue.status(id, 'b')).toBeUndefined()
    expect(await queue.cancel(id, 'b')).toBe('unknown')
    expect(await queue.cancel(id, 'a')).toBe('cancelled')
    expect(events).toEqual([
      { queue: 'jobs', type: 'enqueued', id },
      { queue: 'jobs', type: 'cancelled', id },
    ])
  })

  it('is full at its bound, and tells how long it takes to drain at the rate that was measured', async () => {
    const queue = make({ maxDepth: 20, maxDepthPerIdentity: 20 })
    worker = createWorker({ broker, limit: 1, window: '500ms', handler: () => null })
    for (let i = 0; i < 20; i += 1) await enqueue(queue)
    const full = { outcome: 'full', bound: 'queue' }
    const unknown = await queue.enqueue({ identity: 'a', payload: null })
    expect(unknown).toEqual({ ...full, retryAfterMs: 5_000 })
    await vi.advanceTimersByTimeAsync(5_000)
    for (let i = 0; i < 11; i += 1) await enqueue(queue)
    await vi.advanceTimersByTimeAsync(500)
    await enqueue(queue)
    const known = await queue.enqueue({ identity: 'a', payload: null })
    expect(known).toMatchObject(full)
    const retryAfterMs = 'retryAfterMs' in known ? known.retryAfterMs : 0
    expect(retryAfterMs).toBeGreaterThanOrEqual(8_000)
    expect(retryAfterMs).toBeLessThanOrEqual(11_000)
    expect(events).toContainEqual({ queue: 'jobs', type: 'refused', bound: 'queue' })
  })

  it('lets one identity have a tenth of it', async () => {
    const queue = make({ maxDepth: 20 })
    await enqueue(queue)
    await enqueue(queue)
    expect(await queue.enqueue({ identity: 'a', payload: null })).toMatchObject({
      outcome: 'full',
      bound: 'identity',
    })
    await enqueue(queue, { identity: 'b' })
  })

  it('has jobs expire that wait longer than they are worth', async () => {
    const queue = make({ maxAge: '10s' })
    const id = await enqueue(queue)
    await vi.advanceTimersByTimeAsync(10_000)
    worker = createWorker({ broker, handler: () => null })
    await vi.advanceTimersByTimeAsync(10)
    expect(await queue.status(id, 'a')).toMatchObject({ state: 'expired' })
  })

  it('forgets outcomes after the retention', async () => {
    const queue = make({ retention: '10s' })
    const id = await enqueue(queue)
    worker = createWorker({ broker, handler: () => null })
    await vi.advanceTimersByTimeAsync(10)
    expect(await queue.status(id, 'a')).toMatchObject({ state: 'done' })
    await vi.advanceTimersByTimeAsync(10_000)
    expect(await queue.status(id, 'a')).toBeUndefined()
  })

  it('takes one job for one idempotency key and payload, and refuses another payload', async () => {
    const queue = make()
    const job = { identity: 'a', payload: { page: 1 }, idempotencyKey: 'order-1' }
    const first = await queue.enqueue(job)
    expect(await queue.enqueue({ ...job, payload: { page: 1 } })).toMatchObject({
      outcome: 'known',
      id: 'id' in first ? first.id : '',
    })
    expect(await queue.enqueue({ ...job, payload: { page: 2 } })).toEqual({ outcome: 'mismatch' })
    expect(await queue.enqueue({ ...job, identity: 'b' })).toMatchObject({ outcome: 'enqueued' })
  })

  it('refuses a job that is too large', async () => {
    const queue = make({ maxJobBytes: 100 })
    const job = { identity: 'a', payload: 'ü'.repeat(50) }
    expect(await queue.enqueue(job)).toEqual({ outcome: 'too-large' })
  })

  it('waits until a job has ended, and no longer than it is told', async () => {
    const queue = make()
    worker = createWorker({
      broker,
      handler: () => new Promise((resolve) => setTimeout(() => resolve('finished'), 3_000)),
    })
    const id = await enqueue(queue)
    const soon = queue.settled(id, 'a', 1_000)
    const later = queue.settled(id, 'a', 10_000)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(await soon).toMatchObject({ state: 'running' })
    await vi.advanceTimersByTimeAsync(2_600)
    expect(await later).toMatchObject({ state: 'done', result: 'finished' })
    expect(await queue.settled('nobody', 'a', 1_000)).toBeUndefined()
  })

  it.each([
    [{ broker: undefined }, /^broker must be a broker/],
    [{ maxDepth: 0 }, /^maxDepth must be a whole number from 1/],
    [{ maxDepth: 5, maxDepthPerIdentity: 6 }, /^maxDepthPerIdentity must be .* from 1 to 5/],
    [{ maxAge: '5' }, /^maxAge must be/],
    [{ retention: 0 }, /^retention must be/],
    [{ maxJobBytes: 1 }, /^maxJobBytes must be/],
    [{ identity: 'user' }, /^identity must be a resolver/],
    [{ depth: 5 }, /there is no option 'depth'/],
  ])('refuses options that cannot be meant: %j', (wrong, message) => {
    expect(() => createQueue({ broker, ...wrong } as unknown as QueueOptions)).toThrow(message)
  })
})
