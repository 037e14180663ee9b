import { createHash, createHmac } from 'node:crypto'
import {
  createLimiter,
  type DecisionEvent,
  digestOf,
  type LimiterEvent,
  memoryStore,
  type Observers,
} from '@sluice/core'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import {
  digestIdentity,
  firstByteOf,
  portableDigest,
} from '../../packages/core/src/model/digest.ts'
import { patientLimiter } from '../support/patient-limiter.ts'
import { goneStore } from '../support/store-through.ts'

describe('the option observers', () => {
  it('accepts one object with extra properties, and calls its methods on it', async () => {
    class Counting implements Observers {
      length = 0
      onDecision(): void {
        this.length += 1
      }
    }
    const observers = new Counting()
    await createLimiter({ limit: 1, window: '1m', observers }).consume('a')
    expect(observers.length).toBe(1)
  })

  it('notifies the others if one throws or rejects, and answers as usual', async () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    const [first, told] = [vi.fn(), vi.fn()]
    const broken = () => {
      throw new Error('broken')
    }
    const late = () => Promise.reject(new Error('late'))
    const observers = [first, late, broken, told].map((onDecision) => ({ onDecision }))
    const limiter = createLimiter({ limit: 1, window: '1m', observers })
    for (const allowed of [true, false]) expect((await limiter.consume('a')).allowed).toBe(allowed)
    for (const { mock } of [first, told]) {
      expect(mock.calls.map(([{ decision }]) => decision.allowed)).toEqual([true, false])
    }
    expect(warn.mock.calls).toEqual([[expect.stringContaining('sluice: an observer threw: ')]])
    warn.mockRestore()
  })

  it('notifies an observer of several limiters on one store once per store event', async () => {
    const onResilience = vi.fn()
    const observer = { onResilience }
    const store = goneStore(memoryStore())
    const options = { store, observers: [observer, { onStoreError: () => undefined }] }
    const limiters = [1, 2].map((limit) => patientLimiter({ ...options, limit, window: '1m' }))
    for (let i = 0; i < 3; i += 1) await limiters[0]?.consume('a')
    const entered = onResilience.mock.calls.filter(([{ type }]) => type === 'fallback-entered')
    expect(entered).toHaveLength(1)
  })

  it("receives each limiter, with its policies and its store's health", () => {
    const told: LimiterEvent[] = []
    const store = memoryStore()
    createLimiter({
      policies: [{ name: 'burst', limit: 1, window: '1s' }],
      penalty: { after: 'never' },
      store,
      observers: [{ onLimiter: (event) => told.push(event) }],
    })
    expect(told).toHaveLength(1)
    expect(told[0]?.policies.map(({ algorithm }) => algorithm)).toEqual(['sliding-log', 'penalty'])
    expect(told[0]?.space).toBe(store)
    expect(told[0]?.storeHealth()).toMatchObject({ breaker: 'closed', keysOwed: 0 })
  })
})

describe('the event of a decision', () => {
  it('has the request, the source of the answer, the duration, and the digest', async () => {
    const events: DecisionEvent[] = []
    const observers = { onDecision: (event: DecisionEvent) => events.push(event) }
    const limiter = createLimiter({ limit: 1, window: '1m', observers })
    for (const method of ['consume', 'peek'] as const) await limiter[method]('user:42')
    expect(events).toHaveLength(1)
    const [event] = events
    expect(event).toMatchObject({ answeredBy: 'memory', isQueued: false, key: 'user:42' })
    const checks = [{ key: 'user:42', cost: 1, limit: 1 }]
    const policy = { name: 'default' }
    expect(event).toMatchObject({ checks, policy, request: undefined, route: undefined })
    expect(event?.durationMs).toBeGreaterThanOrEqual(0)
    expect(event?.digest).toBe(digestOf('user:42', {}))
  })

  it('has the timing of at most 15 decisions before it where memory decides, and of at most 50 ms', async () => {
    vi.useFakeTimers()
    try {
      const timesMs: (number | undefined)[] = []
      const observers = [{ onDecision: ({ atMs }: DecisionEvent) => void timesMs.push(atMs) }]
      const limiter = createLimiter({ limit: 1, window: '1m', observers })
      for (let decision = 1; decision <= 20; decision += 1) {
        await limiter.consume('a')
        vi.advanceTimersByTime(1)
      }
      const passed = timesMs.map((atMs = Number.NaN) => atMs - (timesMs[0] ?? 0))
      expect(passed).toEqual([...Array(16).fill(0), ...Array(4).fill(16)])
      vi.advanceTimersByTime(50)
      await limiter.consume('a')
      expect((timesMs.at(-1) ?? 0) - (timesMs[0] ?? 0)).toBe(70)
    } finally {
      vi.useRealTimers()
    }
  })

  it("names the user's store, or the failure mode that answered instead", async () => {
    const names: string[] = []
    const observers = [
      { onDecision: ({ answeredBy }: DecisionEvent) => void names.push(answeredBy) },
      { onStoreError: () => undefined },
    ]
    const shop = { ...memoryStore(), name: 'shop' }
    const broken = goneStore(memoryStore())
    for (const store of [shop, broken]) {
      const options = { store, observers }
      await createLimiter({ ...options, limit: 1, window: '1m' }).consume('a')
    }
    expect(names).toEqual(['shop', 'fallback'])
  })
})

describe('digestOf', () => {
  it('is the start of the SHA-256 of the key in UTF-16, or of an HMAC, for any text, with and without Node', () => {
    const text = fc.string({ unit: 'binary', maxLength: 1_000 })
    const other = fc.string({ unit: 'binary', minLength: 1, maxLength: 200 })
    const secret = fc.oneof(other, fc.constantFrom(undefined, 's'.repeat(64), 's'.repeat(65)))
    fc.assert(
      fc.property(fc.oneof(text, fc.constant('x'.repeat(1_000))), secret, (key, secret) => {
        const hash = secret === undefined ? createHash('sha256') : createHmac('sha256', secret)
        const bytes = hash.update(Buffer.from(key, 'utf16le')).digest()
        const digest = bytes.toString('base64url', 0, 16)
        if (secret === undefined) expect(digestOf(key, {})).toBe(digest)
        expect(digestIdentity(key, secret)).toBe(digest)
        expect(portableDigest(key, secret)).toBe(digest)
        expect(firstByteOf(digest)).toBe(bytes[0])
      }),
    )
  })

  it("is the store's own, if it has one", () => {
    expect(digestOf('a', { keys: { digestOf: (key) => `digest of ${key}` } })).toBe('digest of a')
  })
})
