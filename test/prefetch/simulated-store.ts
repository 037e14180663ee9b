import {
  type Check,
  type CheckLimiter,
  type Decision,
  isPromise,
  memoryStore,
  type Outcome,
  type Store,
} from '@sluice/core'
import { vi } from 'vitest'
import { patientLimiter, type SomeOptions } from '../support/patient-limiter.ts'

interface Asked {
  readonly op: string
  readonly check: Check
}

/** How the answers to grants come: at once; when the test lets them; never, though they were done. */
type Answering = 'at-once' | 'when-released' | 'lost'

/** A store that grants units, decides at once, and tells what it was asked. The clock is faked. */
export class SimulatedStore implements Store {
  readonly grantsUnits = true
  denials = { ttlMs: 0 }
  readonly asked: Asked[] = []
  answering: Answering = 'at-once'
  /** Fails all that is asked. */
  isDown = false
  /** Makes the answers to requests wait for the test. */
  isSlow = false
  readonly #memory = memoryStore()
  readonly #waiting: (() => void)[] = []

  apply(op: Parameters<Store['apply']>[0], checks: readonly Check[]): ReturnType<Store['apply']> {
    for (const check of checks) this.asked.push({ op, check })
    if (this.isDown) throw new Error('down')
    const outcomes = this.#memory.apply(op, checks)
    const answering = op === 'grant' ? this.answering : isSlowOp(op, this.isSlow)
    if (answering === 'at-once') return outcomes
    if (answering === 'lost') return Promise.reject(new Error('lost'))
    return new Promise<readonly Outcome[]>((resolve) => {
      this.#waiting.push(() => resolve(outcomes))
    })
  }

  /** Lets the answers come that wait. */
  async release(): Promise<void> {
    for (const answer of this.#waiting.splice(0)) answer()
    await vi.advanceTimersByTimeAsync(0)
  }

  /** What was asked with an operation, the latest last. */
  of(op: string): readonly Check[] {
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

function isSlowOp(op: string, isSlow: boolean): Answering {
  return isSlow && op === 'consume' ? 'when-released' : 'at-once'
}

/** Consumes of the key `k`, with a limit of its own. */
export async function consume(
  limiter: CheckLimiter,
  { cost = 1, limit }: { cost?: number; limit?: number } = {},
): Promise<Decision> {
  const [policy] = limiter.policies
  if (!policy) throw new Error('no policy')
  const decision = limiter.decide([{ policy, key: 'k', cost, limit: limit ?? policy.limit }])
  return isPromise(decision) ? await decision : decision
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
