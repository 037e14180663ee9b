import type { KeyState } from '../algorithms/algorithm.ts'
import { shareOf } from '../algorithms/bucket.ts'
import { algorithmOf } from '../algorithms/table.ts'
import type { MemoryStore } from '../memory-store/memory-store.ts'
import type { ChangeAtStore, Check, CountedKey, Held, Home } from '../model/check.ts'
import { type Decision, decisionOf } from '../model/decision.ts'
import type { Policy } from '../model/policy.ts'
import type { Ask, ManualChange, Store } from '../model/store.ts'
import { BoundedMap } from '../runtime/bounded-map.ts'
import { Debts, type Due } from './debts.ts'

/** Older blocks are dropped from the list: they stay in force here until they expire. */
const maxBlocked = 100_000

/** Wait (ms) of clients that only the store can admit: nobody knows when it will work again. */
export const unavailableRetryMs = 5_000

/** Decides in bounded local memory while a store is unavailable. Keeps the debts and blocks. */
export class Fallback implements Home {
  readonly debts: Debts = new Debts()
  /** Keys that the store has reported as blocked. */
  readonly blocked: BoundedMap<true> = new BoundedMap(maxBlocked)
  readonly #memory: MemoryStore

  constructor(memory: MemoryStore) {
    this.#memory = memory
  }

  /** Not a field: a clone of a decision copies the fields of its receipts' home. */
  get memory(): MemoryStore {
    return this.#memory
  }

  /**
   * @param instances number of processes that decide locally, each with its share of the limits
   * @param isDoubtful true if the store was called and has not answered yet
   */
  decide(ask: Pick<Ask, 'op' | 'checks'>, instances: number, isDoubtful: boolean): Decision {
    const { op, checks } = ask
    const locals = checks.map((check) => localCheck(check, instances))
    const outcomes = this.#memory.apply(op, locals)
    // Clients see the policy, not this process's share of it.
    const shown = outcomes.map((outcome, index) => {
      const check = checks[index]
      if (!check) return outcome
      const { policy, cost } = check
      // A cost above the share, but not above the limit, fits when the store is back.
      const fits =
        !Number.isFinite(outcome.retryAfterMs) && cost <= algorithmOf(policy).capacity(check)
      return { ...outcome, policy, ...(fits && { retryAfterMs: unavailableRetryMs }) }
    })
    const decision = decisionOf(shown, checks, 'fallback')
    for (const [index, check] of checks.entries()) {
      const receipt = outcomes[index]?.receipt
      if (receipt) receipt.home = this
      if (op !== 'charge' && (op !== 'consume' || !decision.allowed)) continue
      const local = locals[index] ?? check
      this.debts.owe({ check, local, units: check.cost }, receipt, isDoubtful)
    }
    return decision
  }

  /** Gives units back here, and to the store if it has counted them since. */
  giveBack(held: Held, changeAtStore: ChangeAtStore): boolean {
    const before = unitsNow(held)
    const isThere = this.change('refund', held)
    // Units that no longer counted are not given back.
    const units = Math.min(held.cost, Math.max(0, before - unitsNow(held)))
    this.debts.giveBack(held.receipt, units, changeAtStore)
    return isThere
  }

  change(op: 'refund' | 'release' | 'renew', held: Held): boolean {
    return this.#memory.change({ op, checks: [held] })[0] ?? false
  }

  /** Repeats the store's change in local memory. */
  overwrite(change: ManualChange): void {
    if (change.op === 'reset') for (const check of change.checks) this.debts.drop(check)
    try {
      this.#memory.change(change)
    } catch {
      // Local memory is full of exhausted keys, so only the store enforces the block.
    }
  }

  /** Replaces the digests in a change with their keys, as far as local memory has them. */
  async keyed<Own extends ManualChange>(change: Own, store: Store): Promise<Own> {
    const checks: CountedKey[] = []
    for (const check of change.checks) {
      const { digest } = check
      const found = digest === undefined ? check : await this.#memory.keys.keyFor(digest, store)
      if (found) checks.push({ ...check, key: found.key })
    }
    return { ...change, checks }
  }

  /**
   * Copies the blocks in outcomes of the store, so that they hold during an outage. Only a denial
   * shows a block; after any other outcome, the block may have been lifted.
   */
  remember(checks: readonly Check[], { outcomes }: Decision): void {
    for (const [index, { allowed, retryAfterMs, remaining = 0 }] of outcomes.entries()) {
      const check = checks[index]
      if (!check || algorithmOf(check.policy).counts !== 'strikes') continue
      const { policy, key } = check
      if (!allowed) {
        this.overwrite({ op: 'block', checks: [{ ...check, blockMs: retryAfterMs }] })
        this.blocked.set(policy.id, key, true)
        // Unknown outcomes, and those of charges, say nothing about a block.
      } else if (remaining > 0 && this.blocked.get(policy.id, key)) {
        this.blocked.delete(policy.id, key)
        this.overwrite({ op: 'reset', checks: [check] })
      }
    }
  }

  /**
   * Returns the units of a debt that still count, as far as local memory knows: it may have
   * dropped keys.
   */
  unitsOwed({ check, local, units }: Due): number {
    const algorithm = algorithmOf(check.policy)
    const most = Math.min(units, algorithm.capacity(check))
    // A bucket's debt has been draining.
    if (algorithm.capacityLevel) return most
    const [outcome] = this.#memory.apply('peek', [local])
    if (!outcome?.remaining) return most
    return Math.min(most, algorithm.capacity(local) - outcome.remaining)
  }
}

function unitsNow({ receipt }: Held): number {
  const { check, incarnation } = receipt
  const algorithm = algorithmOf(check.policy)
  const now = Date.now()
  return algorithm.used(algorithm.clamp(incarnation as KeyState, check, now), check, now)
}

/** Policies divided among a number of processes. */
const divided = new WeakMap<Policy, { readonly instances: number; readonly policy: Policy }>()

/**
 * Returns a check with one process's share of the limit, so that a fleet without its store admits
 * about the limit. The share is at least 1, unless the limit is 0.
 */
function localCheck(check: Check, instances: number): Check {
  const { policy } = check
  const { counts, divide } = algorithmOf(policy)
  // A client whose strikes stay below the limit must not be blocked.
  if (instances === 1 || counts === 'strikes') return check
  let known = divided.get(policy)
  if (known?.instances !== instances) {
    const share = divide?.(policy, instances)
    known = { instances, policy: share ? { ...policy, ...share } : policy }
    divided.set(policy, known)
  }
  return { ...check, policy: known.policy, limit: shareOf(check.limit, instances) }
}
