import { createHash } from 'node:crypto'
import { apiKey } from '@sluice/http'
import {
  type Broker,
  bullmqBroker,
  createQueue,
  createWorker,
  memoryBroker,
  type Queue,
  type QueueEvent,
  type QueueOptions,
  type Worker,
} from '@sluice/queue'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { fakeTime } from './broker-bench.ts'

describe('a queue', () => {
  let broker: Broker
  let events: QueueEvent[]
  let worker: Worker | undefined

  fakeTime()

  beforeEach(() => {
    broker = memoryBroker()
    events = []
  })
  afterEach(async () => {
    await worker?.close()
    worker = undefined
  })

  function make(options: Partial<QueueOptions> = {}): Queue {
    const observers = { onEvent: (event: QueueEvent) => events.push(event) }
    return createQueue({ broker, observers, ...options })
  }

  async function enqueue(queue: Queue, fields = {}): Promise<string> {
    const result = await queue.enqueue({ identity: 'a', payload: null, ...fields })
    if (result.outcome !== 'enqueued') throw new Error(result.outcome)
    return result.id
  }

  it("notifies each observer of a list, and shows the queue's depth", async () => {
    const onQueue = vi.fn()
    const told: QueueEvent[] = []
    const observer = { onQueue, onEvent: (event: QueueEvent) => void told.push(event) }
    const queue = make({ observers: [observer, { onEvent: () => Promise.reject(new Error('a')) }] })
    worker = createWorker({ broker, handler: () => null, observers: observer })
    await enqueue(queue)
    await vi.advanceTimersByTimeAsync(100)

    expect(told.map(({ type }) => type)).toEqual(['enqueued', 'started', 'done'])
    expect(onQueue).toHaveBeenCalledTimes(2)
    expect(await onQueue.mock.calls[0]?.[0].depth()).toMatchObject({ depth: 0 })
  })

  it('gives jobs unguessable ids, and shows each only to its owner', async () => {
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

  it('is full at its bound, and estimates the wait from the measured rate', async () => {
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

  // A timer of Node reaches some 24 days.
  it.each(['10s', '60d'] as const)('forgets outcomes after their time: %s', async (retention) => {
    const queue = make({ retention })
    const id = await enqueue(queue)
    worker = createWorker({ broker, handler: () => null })
    await vi.advanceTimersByTimeAsync(10)
    expect(await queue.status(id, 'a')).toMatchObject({ state: 'done' })
    await vi.advanceTimersByTimeAsync(retention === '10s' ? 10_000 : 60 * 86_400_000)
    expect(await queue.status(id, 'a')).toBeUndefined()
    // Nothing is before a job that would come now.
    expect(await queue.expectedWaitMs()).toBe(1_000)
  })

  it('refuses a job that is too large', async () => {
    const queue = make({ maxJobBytes: 100 })
    const job = { identity: 'a', payload: 'ü'.repeat(50) }
    expect(await queue.enqueue(job)).toEqual({ outcome: 'too-large' })
  })

  it('waits until a job has ended, within its maximum', async () => {
    const queue = make()
    worker = createWorker({
      broker,
      handler: () => new Promise((resolve) => setTimeout(() => resolve('finished'), 3_000)),
    })
    const id = await enqueue(queue)
    const soon = queue.settled(id, 'a', { timeoutMs: 1_000 })
    const later = queue.settled(id, 'a', { timeoutMs: 10_000 })
    await vi.advanceTimersByTimeAsync(1_000)
    expect(await soon).toMatchObject({ state: 'running' })
    await vi.advanceTimersByTimeAsync(2_600)
    expect(await later).toMatchObject({ state: 'done', result: 'finished' })
    expect(await queue.settled('nobody', 'a', { timeoutMs: 1_000 })).toBeUndefined()
  })

  it('ends the wait for a job on abort', async () => {
    const queue = make()
    const id = await enqueue(queue)
    const leaving = new AbortController()
    const waits = queue.settled(id, 'a', { timeoutMs: 60_000, signal: leaving.signal })
    await vi.advanceTimersByTimeAsync(1_000)
    leaving.abort()
    expect(await waits).toMatchObject({ state: 'pending' })
    expect(vi.getTimerCount()).toBe(0)
    const left = { timeoutMs: 60_000, signal: AbortSignal.abort() }
    expect(await queue.settled(id, 'a', left)).toMatchObject({ state: 'pending' })
  })

  it('passes on a payload as JSON represents it', async () => {
    const seen: unknown[] = []
    worker = createWorker({ broker, handler: ({ payload }) => void seen.push(payload) })
    const at = new Date(0)
    await enqueue(make(), { payload: { at, none: undefined, list: [undefined, null] } })
    await enqueue(make(), { payload: undefined })
    await enqueue(make(), { payload: { toJSON: () => 'own' } })
    await vi.advanceTimersByTimeAsync(10)
    expect(seen).toEqual([{ at: at.toISOString(), list: [null, null] }, null, 'own'])
  })

  const throwing = () => {
    throw Object.create(null)
  }
  const cyclic: Record<string, unknown> = {}
  cyclic.self = cyclic
  let deep: unknown = null
  for (let i = 0; i < 50_000; i += 1) deep = [deep]

  it.each([
    ['a BigInt', { at: 10n }, /: at is a BigInt, /],
    ['a function', () => 1, /: it is a function, which JSON drops$/],
    ['a symbol', Symbol('s'), /: it is a symbol, /],
    ['a function in it', { a: [{ b: 1 }, { c: () => 1 }] }, /: a\[1\]\.c is a function, /],
    ['a symbol in it', [[Symbol('s')]], /: \[0\]\[0\] is a symbol, /],
    ['a Map', { at: new Map([[1, 2]]) }, /: at is a Map, /],
    ['a Set', new Set([1]), /: it is a Set, /],
    ['what holds itself', cyclic, /circular/],
    ['what is nested without end', deep, /stack/],
    ['what throws if read', new Proxy({}, { get: throwing }), /cannot be converted to a string/],
  ])('rejects a payload that JSON cannot carry: %s', async (_what, payload, what) => {
    const queue = make()
    const message = new RegExp(`^the payload cannot be serialised as JSON.*${what.source}`)
    await expect(queue.enqueue({ identity: 'a', payload })).rejects.toMatchObject({
      code: 'SLUICE_PAYLOAD_INVALID',
      message: expect.stringMatching(message),
    })
    expect(await queue.depth()).toMatchObject({ depth: 0 })
  })

  it('replaces an identity by a digest that cannot be guessed without the secret', async () => {
    const jobs: string[] = []
    worker = createWorker({ broker, handler: ({ identity }) => void jobs.push(identity) })
    const plain = make()
    const secret = make({ secret: 'a secret of this fleet' })
    const same = make({ secret: 'a secret of this fleet' })
    await enqueue(plain)
    const id = await enqueue(secret)
    await vi.advanceTimersByTimeAsync(10)
    expect(jobs).toEqual([plain.digestOf('a'), secret.digestOf('a')])
    expect(plain.digestOf('a')).toBe(createHash('sha256').update('a').digest('base64url'))
    expect(secret.digestOf('a')).toMatch(/^[\w-]{43}$/)
    expect(secret.digestOf('a')).not.toBe(plain.digestOf('a'))
    expect(secret.digestOf('a')).not.toBe(make({ secret: 'a secret of another' }).digestOf('a'))
    expect(await same.status(id, 'a')).toMatchObject({ state: 'done' })
    expect(await plain.status(id, 'a')).toBeUndefined()
  })

  it('warns once in production where processes share a queue, and identities could be guessed', () => {
    vi.stubEnv('NODE_ENV', 'production')
    onTestFinished(() => void vi.unstubAllEnvs())
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    make()
    const shared = bullmqBroker({ connection: 'redis://127.0.0.1:1' })
    make({ broker: shared, secret: 'a secret of this fleet' })
    expect(warn).not.toHaveBeenCalled()
    make({ broker: shared })
    make({ broker: shared })
    expect(warn.mock.calls).toEqual([[expect.stringContaining('createQueue has no secret')]])
  })

  it.each([
    [{ broker: undefined }, /^broker must be a broker/],
    [{ broker: {} }, /^broker must be a broker, such as memoryBroker/],
    [{ maxDepth: 0 }, /^maxDepth must be a whole number from 1/],
    [{ maxDepth: null }, /^maxDepth must be .*but is null/],
    [{ maxDepthPerIdentity: 0 }, /^maxDepthPerIdentity must be/],
    [{ maxDepth: 5, maxDepthPerIdentity: 6 }, /^maxDepthPerIdentity must be .* from 1 to 5/],
    [{ maxAge: '5' }, /^maxAge must be/],
    [{ maxAge: '3651d' }, /^maxAge must be at most ten years/],
    [{ retention: 0 }, /^retention must be/],
    [{ retention: '3651d' }, /^retention must be at most ten years/],
    [{ maxJobBytes: 1 }, /^maxJobBytes must be/],
    [{ maxJobBytes: 100_000_001 }, /^maxJobBytes must be .* to 100000000/],
    [{ identity: 'user' }, /^identity must be a resolver/],
    [{ identity: apiKey }, /^identity must be called, as in identity: apiKey\(…\)/],
    [{ secret: '' }, /^secret must be a string of at least 16 characters, but is empty/],
    [{ secret: 7 }, /^secret must be a string of at least 16 characters, but is a number/],
    [{ resultUrl: '/results' }, /^resultUrl must be a function of the job/],
    [{ observers: { onEvent: 'log' } }, /^observers\.onEvent must be a function/],
    [{ observers: [{}] }, /^observers\[0\] must be an object with at least one of .* onQueue/],
    [{ depth: 5 }, /there is no option 'depth'/],
  ])('rejects invalid options: %j', (wrong, message) => {
    expect(() => createQueue({ broker, ...wrong } as unknown as QueueOptions)).toThrow(message)
  })
})
