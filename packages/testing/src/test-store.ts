import {
  type Check,
  type DecidingOp,
  type Duration,
  durationMs,
  knownFields,
  memoryStore,
  type Outcome,
  type Store,
} from '@sluice/core'
import { algorithmOf, unknownOutcome } from '@sluice/core/backend'

/** Options of `denyAll`. */
export interface DenyOptions {
  /** Wait sent to refused clients. @default '1m' */
  readonly retryAfter?: Duration | undefined
}

/** A store for an application's tests. Changes apply to every limiter that uses it. */
export interface TestStore extends Store {
  /** Admits every request: limits are off. */
  admitAll(): void
  /** Denies every request that costs something, whatever its limit. */
  denyAll(options?: DenyOptions): void
  /** Counts like `memoryStore`, from zero. */
  count(): void
}

/**
 * Creates a store that counts in memory until a test switches its limits off or makes them deny.
 * @example
 * const store = testStore()
 * const app = createApp({ store })
 * store.denyAll({ retryAfter: '30s' })
 */
export function testStore(): TestStore {
  let memory = memoryStore()
  let decide: Decide | undefined
  return {
    name: 'test',
    apply: (op, checks) => (decide ?? memory.apply)(op, checks),
    change: (change) => (decide ? change.checks.map(() => true) : memory.change(change)),
    admitAll() {
      decide = (_op, checks) => checks.map(admitted)
    },
    denyAll(options = {}) {
      knownFields(options, 'denyAll', ['retryAfter'])
      const retryAfterMs = durationMs(options.retryAfter ?? '1m', 'retryAfter')
      decide = (op, checks) => {
        const asks = op === 'consume' || op === 'peek'
        return checks.map((check) => (asks ? denied(check, retryAfterMs) : admitted(check)))
      }
    },
    count() {
      memory = memoryStore()
      decide = undefined
    },
  }
}

type Decide = (op: DecidingOp, checks: readonly Check[]) => readonly Outcome[]

function admitted(check: Check): Outcome {
  return { ...unknownOutcome(check), remaining: check.limit, resetMs: check.policy.windowMs }
}

/** Penalties deny nothing: blocked keys are refused in another way. */
function denied(check: Check, retryAfterMs: number): Outcome {
  const isPenalty = algorithmOf(check.policy).counts === 'strikes'
  if (isPenalty || check.cost === 0) return admitted(check)
  return { ...admitted(check), allowed: false, remaining: 0, resetMs: retryAfterMs, retryAfterMs }
}
