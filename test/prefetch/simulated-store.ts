import {
  type Change,
  type Check,
  type CheckLimiter,
  type DecidingOp,
  type Decision,
  type GrantCheck,
  type Granted,
  type MaybePromise,
  memoryStore,
  type Outcome,
  type Store,
} from '@sluice/core'
import { vi } from 'vitest'
import { checkOf, patientLimiter, type SomeOptions } from '../support/patient-limiter.ts'
import type { AnyCheck, AnyOp } from '../support/store-through.ts'

interface Asked {
  readonly op: AnyOp
  readonly check: AnyCheck
}

/** How the answers to grants come: at once; when the test lets them; never, though they were done. */
type Answering = 'at-once' | 'when-released' | 'lost'

/** A store that grants units, decides at once, and tells what it was asked. The clock is faked. */
export class SimulatedStore implements Store {
  denials = { ttlMs: 0 }
  readonly asked: Asked[] = []
  answering: Answering = 'at-once'
  /** Fails all that is asked. */
  isDown = false
  /** Makes the answers to requests wait for the test. */
  isSlow = false
  readonly #memory = memoryStore()
  readonly #waiting: (() => void)[] = []

  apply(op: DecidingOp, checks: readonly Check[]): MaybePromise<readonly Outcome[]> {
    const answering = this.isSlow && op === 'consume' ? 'when-released' : 'at-once'
    return this.#answer(op, checks, () => this.#memory.apply(op, checks), answering)
  }

  change(change: Change): MaybePromise<readonly boolean[]> {
    const checks = change.op === 'block' ? [] : change.checks
    return this.#answer(change.op, checks, () => this.#memory.change(change))
  }

  grant(checks: readonly GrantCheck[]): MaybePromise<readonly Granted[]> {
    return this.#answer('grant', checks, () => this.#memory.grant(checks), this.answering)
  }

  #answer<T>(
    op: AnyOp,
    checks: readonly AnyCheck[],
    decide: () => T,
    answering: Answering = 'at-once',
  ): MaybePromise<T> {
    for (const check of checks) this.asked.push({ op, check })
    if (this.isDown) throw new Error('down')
    const answer = decide()
    if (answering === 'at-once') return answer
    if (answering === 'lost') return Promise.reject(new Error('lost'))
    return new Promise<T>((resolve) => {
      this.#waiting.push(() => resolve(answer))
    })
  }

  /** Lets the answers come that wait. */
  async release(): Promise<void> {
    for (const answer of this.#waiting.splice(0)) answer()
    await vi.advanceTimersByTimeAsync(0)
  }

  /** What was asked with an operation, the latest last. */
  of(op: AnyOp): readonly AnyCheck[] {
    return this.asked.flatMap((each) => (each.op === op ? [each.check] : []))
  }

  limiter(options: SomeOptions): CheckLimiter {
    return patientLimiter({
      store: this,
      instances: 1,
      observers: { onStoreError: () => undefined },
      ...options,
    })
  }
}

/** Consumes of the key `k`, with a limit of its own. */
export async function consume(
  limiter: CheckLimiter,
  own: { cost?: number; limit?: number } = {},
): Promise<Decision> {
  return limiter.decide([checkOf(limiter.policies[0], own)])
}

/** Consumes units one by one, at even distances. Returns the number of admitted ones. */
export async function consumeFor(
  limiter: CheckLimiter,
  { ms, everyMs, ...check }: { ms: number; everyMs: number; limit?: number },
): Promise<number> {
  let allowed = 0
  for (let i = 0; i < ms / everyMs; i += 1) {
    if ((await consume(limiter, check)).allowed) allowed += 1
    await vi.advanceTimersByTimeAsync(everyMs)
  }
  return allowed
}

export function fakeClocks(): void {
  vi.useFakeTimers({
    toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'],
    now: 1_795_195_800_000,
  })
}
