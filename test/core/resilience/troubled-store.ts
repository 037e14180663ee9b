import {
  type Cancellation,
  type Check,
  type MemoryStore,
  memoryStore,
  type Outcome,
  type Store,
  type StoreOp,
  type StoreTelemetry,
} from '@sluice/core'

type Mood = 'answers' | 'hangs' | 'rejects'

interface Call {
  readonly op: StoreOp
  readonly checks: readonly Check[]
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
    op: StoreOp,
    checks: readonly Check[],
    cancellation?: Cancellation,
  ): Promise<readonly Outcome[]> {
    return new Promise((resolve, reject) => {
      let isDone = false
      const once = (work: () => void): void => {
        if (!isDone) work()
        isDone = true
      }
      const call = {
        op,
        checks,
        cancellation,
        answer: () => once(() => resolve(this.memory.apply(op, checks))),
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
