import {
  type Cancellation,
  type Change,
  type Check,
  type CheckLimiter,
  type DecidingOp,
  type GrantCheck,
  type Granted,
  type MemoryStore,
  memoryStore,
  type Observers,
  type Outcome,
  observerList,
  type ResilienceEvent,
  type Store,
  type StoreOp,
  type StoreTelemetry,
} from '@sluice/core'
import { afterEach, beforeEach, vi } from 'vitest'
import { limiterOf, type SomeOptions } from '../../support/patient-limiter.ts'
import type { AnyCheck } from '../../support/store-through.ts'

/** One that loses its answers has decided. */
type Mood = 'answers' | 'hangs' | 'rejects' | 'loses'

interface Call {
  readonly op: StoreOp | 'grant'
  readonly checks: readonly AnyCheck[]
  readonly cancellation: Cancellation | undefined
  isLost: boolean
  /** Answers now: as a store does that was frozen, and decides when it wakes. */
  answer(): void
  fail(error: Error): void
}

/** A store elsewhere, which may be away. */
export class TroubledStore implements Store {
  readonly memory: MemoryStore = memoryStore()
  readonly calls: Call[] = []
  mood: Mood = 'answers'
  /** The moods of single operations. */
  moods: { [op in StoreOp | 'grant']?: Mood } = {}
  fleet = { instances: 1 }
  readonly events: ResilienceEvent[] = []
  /** Tells that its client is connected again. */
  reconnect: () => void = () => undefined
  readonly telemetry: StoreTelemetry = {
    observeReturn: (observer) => {
      this.reconnect = observer
    },
  }

  apply(
    op: DecidingOp,
    checks: readonly Check[],
    cancellation?: Cancellation,
  ): Promise<readonly Outcome[]> {
    const decide = () => this.memory.apply(op, checks)
    return this.#call({ op, checks, cancellation }, decide)
  }

  change(change: Change, cancellation?: Cancellation): Promise<readonly boolean[]> {
    const checks = change.op === 'block' ? [] : change.checks
    const decide = () => this.memory.change(change)
    return this.#call({ op: change.op, checks, cancellation }, decide)
  }

  grant(checks: readonly GrantCheck[]): Promise<readonly Granted[]> {
    const decide = () => this.memory.grant?.(checks) ?? []
    return this.#call({ op: 'grant', checks, cancellation: undefined }, decide)
  }

  #call<T>(asked: Omit<Call, 'answer' | 'fail' | 'isLost'>, decide: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      let isDone = false
      const once = (work: () => void): void => {
        if (!isDone) work()
        isDone = true
      }
      const call: Call = {
        ...asked,
        isLost: false,
        answer: () => once(() => resolve(decide())),
        fail: (error) =>
          once(() => {
            call.isLost = true
            reject(error)
          }),
      }
      this.calls.push(call)
      const mood = this.moods[asked.op] ?? this.mood
      if (mood === 'loses') decide()
      if (mood === 'answers') call.answer()
      else if (mood !== 'hangs') call.fail(new Error('down'))
    })
  }

  asked(op: StoreOp): number {
    return this.calls.filter((call) => call.op === op).length
  }

  of(op: StoreOp | 'grant'): readonly AnyCheck[] {
    return this.calls.flatMap((call) => (call.op === op ? call.checks : []))
  }

  async release(): Promise<void> {
    for (const call of [...this.calls]) call.answer()
    await vi.advanceTimersByTimeAsync(0)
  }

  limiter({ observers, ...options }: SomeOptions = {}): CheckLimiter {
    const own: Observers = {
      onResilience: (event) => void this.events.push(event),
      onStoreError: () => undefined,
    }
    return limiterOf({
      ...(!options.policies && { name: 'p', limit: 10, window: '1m' }),
      ...{ store: this, observers: [own, ...observerList({ observers })], ...options },
    })
  }

  /** Fails until nobody asks any more. */
  async cutOff(limiter: CheckLimiter): Promise<void> {
    this.mood = 'rejects'
    for (let i = 0; i < 3; i += 1) await limiter.peek('nobody')
  }

  /** Is well, until everybody has noticed. */
  async comeBack(limiter: CheckLimiter): Promise<void> {
    this.mood = 'answers'
    for (let i = 0; i < 40; i += 1) {
      await vi.advanceTimersByTimeAsync(1_000)
      await limiter.peek('nobody')
    }
  }

  /** Answers one probe, and then hangs: the limiter reports what it owes, and waits for the answer. */
  async blink(limiter: CheckLimiter): Promise<void> {
    this.mood = 'hangs'
    await vi.advanceTimersByTimeAsync(500)
    void limiter.peek('nobody')
    this.calls.at(-1)?.answer()
    await vi.advanceTimersByTimeAsync(0)
  }

  async answerLate(): Promise<void> {
    this.mood = 'answers'
    this.calls.at(-1)?.answer()
    await vi.advanceTimersByTimeAsync(0)
  }
}

/** Fakes the clocks in each test of a file, and begins it with something new. */
export function beginEach(begin: () => unknown): void {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] })
    begin()
  })
  afterEach(() => void vi.useRealTimers())
}
