import {
  type Check,
  type Duration,
  durationMs,
  knownFields,
  memoryStore,
  type Outcome,
  type Store,
  type StoreOp,
} from '@sluice/core'
import { algorithmOf, unknownOutcome } from '@sluice/core/backend'

/** Options of `denyAll`. */
export interface DenyOptions {
  /** Wait that refusals tell clients. @default '1m' */
  readonly retryAfter?: Duration | undefined
}

/** A store for the tests of an application. A change holds for every limiter that counts in it. */
export interface TestStore extends Store {
  /** Admits every request: limits are off. */
  admitAll(): void
  /** Denies every request that costs something, whatever its limit. */
  denyAll(options?: DenyOptions): void
  /** Counts as `memoryStore` does, from zero. */
  count(): void
}

/**
 * Creates a store that counts in memory until a test turns its limits off, or has them deny.
 * @example
 * const store = testStore()
 * const app = createApp({ store })
 * store.denyAll({ retryAfter: '30s' })
 */
export function testStore(): TestStore {
  let decide = counting()
  return {
    name: 'test',
    apply: (op, checks) => decide(op, checks),
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
      decide = counting()
    },
  }
}

type Decide = (op: StoreOp, checks: readonly Check[]) => readonly Outcome[]

function counting(): Decide {
  const store = memoryStore()
  return (op, checks) => store.apply(op, checks)
}

function admitted(check: Check): Outcome {
  return { ...unknownOutcome(check), remaining: check.limit, resetMs: check.policy.windowMs }
}

/** Penalties deny nothing: a key that they block is refused in another way. */
function denied(check: Check, retryAfterMs: number): Outcome {
  const isPenalty = algorithmOf(check.policy).counts === 'strikes'
  if (isPenalty || check.cost === 0) return admitted(check)
  return { ...admitted(check), allowed: false, remaining: 0, resetMs: retryAfterMs, retryAfterMs }
}
