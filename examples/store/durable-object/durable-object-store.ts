import type { DurableObjectNamespace } from 'cloudflare:workers'
import { type Change, type Check, Receipt, type Store } from '@sluice/core'
import type { Counts, SentChange } from './counts.ts'

export interface DurableObjectStoreOptions {
  /**
   * Returns the name of the object that counts a check. All checks of a request must use the same object.
   * @default one object counts everything
   */
  readonly objectOf?: (check: Pick<Check, 'key' | 'identity'>) => string
  /** Time (ms) for which an isolate caches a denial. @default 1_000 */
  readonly denialTtlMs?: number
  /** Milliseconds since 1970, for tests. @default the clock of the object */
  readonly clock?: () => number
}

/** Counts in Durable Objects, which all isolates share. */
export function durableObjectStore(
  namespace: DurableObjectNamespace<Counts>,
  { objectOf = () => 'counts', denialTtlMs = 1_000, clock }: DurableObjectStoreOptions = {},
): Store {
  function objectFor(checks: readonly Pick<Check, 'key' | 'identity'>[]) {
    const [name = '', ...others] = new Set(checks.map(objectOf))
    if (others.length === 0) return namespace.getByName(name)
    throw new Error('objectOf must return the same name for all checks of a request')
  }

  return {
    denials: { ttlMs: denialTtlMs },
    async apply(op, checks) {
      const outcomes = await objectFor(checks).apply(op, checks, clock?.())
      return checks.map((check, index) => {
        const outcome = outcomes[index]
        if (!outcome) throw new Error('the object answered too few checks')
        const { receipt } = outcome
        return {
          ...outcome,
          policy: check.policy,
          receipt: receipt && new Receipt(check, receipt.at, receipt.incarnation),
        }
      })
    },
    change: (change) => objectFor(change.checks).change(sent(change), clock?.()),
  }
}

/** Replaces receipts, which are class instances, with plain objects. */
function sent(change: Change): SentChange {
  if (change.op === 'reset' || change.op === 'block') return change
  const checks = change.checks.map(({ receipt: { at, incarnation }, ...check }) => ({
    ...check,
    receipt: { at, incarnation },
  }))
  return { op: change.op, checks }
}
