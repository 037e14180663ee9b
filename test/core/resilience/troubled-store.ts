import {
  type Cancellation,
  type Change,
  type Check,
  type DecidingOp,
  type GrantCheck,
  type Granted,
  type MemoryStore,
  memoryStore,
  type Outcome,
  type Store,
  type StoreOp,
  type StoreTelemetry,
} from '@sluice/core'
import type { AnyCheck } from '../../support/store-through.ts'

type Mood = 'answers' | 'hangs' | 'rejects'

interface Call {
  readonly op: StoreOp | 'grant'
  readonly checks: readonly AnyCheck[]
  readonly cancellation: Cancellation | undefined
  /** Answers now: as a store does that was frozen, and decides when it wakes. */
  answer(): void
  fail(error: Error): void
}

/** A store elsewhere, which may be away. */
export class TroubledStore implements Store {
  readonly memory: MemoryStore = memoryStore()
  /** All that it was asked. */
  readonly calls: Call[] = []
  mood: Mood = 'answers'
  fleet = { instances: 1 }
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

  #call<T>(asked: Omit<Call, 'answer' | 'fail'>, decide: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      let isDone = false
      const once = (work: () => void): void => {
        if (!isDone) work()
        isDone = true
      }
      const call = {
        ...asked,
        answer: () => once(() => resolve(decide())),
        fail: (error: Error) => once(() => reject(error)),
      }
      this.calls.push(call)
      if (this.mood === 'answers') call.answer()
      if (this.mood === 'rejects') call.fail(new Error('down'))
    })
  }

  asked(op: StoreOp): number {
    return this.calls.filter((call) => call.op === op).length
  }
}
