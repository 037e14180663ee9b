import { algorithmOf } from '../algorithms/table.ts'
import { CheckOutcome, unknownOutcome } from '../engine/outcome.ts'
import { Strikes } from '../ledger/strikes.ts'
import type { Check, CountedKey } from '../model/check.ts'
import type { Decision } from '../model/decision.ts'
import type { Cancellation, Change, Outcome, Store } from '../model/store.ts'
import { BoundedMap } from '../runtime/bounded-map.ts'
import { isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
import { processWide } from '../runtime/process-wide.ts'
import { monotonicMs } from '../waiting/timers.ts'
import type { PendingAsk } from './pending-ask.ts'

interface Denial {
  readonly check: Check
  readonly outcome: Outcome
  /** Time of the call: the store cannot have decided earlier. */
  readonly askedAt: number
  /** Time of the answer: the store cannot have decided later. */
  readonly answeredAt: number
  /** Number of changes to keys at the time of the call. */
  readonly changes: number
}

const maxDenials = 10_000

/**
 * Caches denials, so that a flood of refused requests costs the store nothing. Once a policy has
 * denied a key, it denies it for `retryAfterMs`, unless units are given back, the key is reset, or
 * the limit is raised. Such changes take effect at once in this process, and within
 * `StoreDenials.ttlMs` in others.
 */
export class Denials {
  readonly #ttlMs: number
  readonly #isSimulated: boolean
  readonly #now: () => number
  readonly #denials = new BoundedMap<Denial>(maxDenials)
  readonly #changed = new BoundedMap<number>(maxDenials)
  readonly #strikes: Strikes
  #changes = 0
  /** The value of `#changes` when all keys may have changed. */
  #allChanged = 0

  constructor(store: Store, ttlMs: number) {
    this.#ttlMs = ttlMs
    const { clock } = store.denials ?? {}
    this.#isSimulated = clock !== undefined
    this.#now = clock ?? monotonicMs
    this.#strikes = new Strikes((check) => this.#charge(store, check))
  }

  /** Returns the outcomes of a request that is certainly denied. Otherwise the store is called. */
  before(ask: PendingAsk): readonly Outcome[] | undefined {
    const { op, checks } = ask
    const denied =
      op !== 'consume' || this.#denials.size === 0 ? undefined : this.#answerHere(checks)
    if (denied) return denied
    if (op === 'charge') this.forget(checks)
    else if (this.#strikes.size > 0) this.#strikes.flushKeys(checks)
    ask.changes = this.#changes
    // Deadlines record the time anyway, and reading a clock costs a fifth of an ask.
    if (this.#isSimulated) ask.simulatedMs = this.#now()
    return undefined
  }

  /** Returns whether the store would certainly deny a check. */
  denies(check: Check): boolean {
    return this.#denials.size > 0 && this.#find(check, this.#now()) !== undefined
  }

  answered(ask: PendingAsk, { allowed, outcomes }: Decision): void {
    const { op, checks, changes } = ask
    if (allowed || op !== 'consume') return
    const askedAt = this.#isSimulated ? ask.simulatedMs : ask.askedAt
    const answeredAt = this.#now()
    for (const [index, check] of checks.entries()) {
      const outcome = outcomes[index]
      const { id } = check.policy
      // One shard may have denied the key for units that another has given back since.
      if (outcome?.allowed) this.#denials.delete(id, check.key)
      if (!outcome || this.#isChangedSince(check, changes)) continue
      const { allowed, remaining } = outcome
      const { counts } = algorithmOf(check.policy)
      // A lease may return at any time, and a denial that counts has to reach the store.
      if (!allowed && counts !== 'leases' && !mustBeCounted(check)) {
        this.#denials.set(id, check.key, { check, outcome, askedAt, answeredAt, changes })
      } else if (counts === 'strikes' && remaining !== undefined) {
        this.#strikes.learn(check, remaining)
      }
    }
  }

  /** Forgets the denials of keys whose units change. */
  forget(keys: readonly CountedKey[]): void {
    this.#changes += 1
    // With only the digest of a key, any key may be the one.
    if (keys.some(({ digest }) => digest !== undefined)) {
      this.close()
      this.#allChanged = this.#changes
    }
    for (const { policy, key } of keys) {
      this.#denials.delete(policy.id, key)
      this.#changed.set(policy.id, key, this.#changes)
    }
  }

  /** Forgets the strikes too, for keys that are reset or blocked. */
  forgetAll(keys: readonly CountedKey[]): void {
    this.forget(keys)
    for (const key of keys) this.#strikes.drop(key)
  }

  /** Sends all strikes to the store, and forgets all denials. */
  close(): void {
    this.#strikes.flushDue()
    this.#denials.clear()
  }

  /** Counts strikes in the store. If it fails, they are lost, and a block comes later. */
  async #charge(store: Store, check: Check): Promise<void> {
    try {
      const [outcome] = await store.apply('charge', [check])
      if (outcome?.remaining) this.#strikes.learn(check, outcome.remaining)
      // The key is blocked. The next request gets the duration from the store.
      else this.forget([check])
    } catch {
      // The next call to the store handles the failure.
    }
  }

  #answerHere(checks: readonly Check[]): readonly Outcome[] | undefined {
    // Penalties come last, and first here: a request that a penalty denies is no strike.
    for (let index = checks.length - 1; index >= 0; index -= 1) {
      const check = checks[index]
      const denial = check && this.#denials.get(check.policy.id, check.key)
      if (!denial) continue
      const nowMs = this.#now()
      if (!this.#covers(denial, check, nowMs)) continue
      if (checks.some(mustBeCounted) || !this.#countStrikes(denial, checks, nowMs)) return undefined
      return checks.map((each) => {
        const own = this.#covers(denial, each, nowMs) ? denial : this.#find(each, nowMs)
        return own ? countedDown(own, each, nowMs) : unknownOutcome(each)
      })
    }
    return undefined
  }

  #find(check: Check, nowMs: number): Denial | undefined {
    const denial = this.#denials.get(check.policy.id, check.key)
    return denial && this.#covers(denial, check, nowMs) ? denial : undefined
  }

  /** Counts a denial as strikes. Returns false if the store has to decide the penalties. */
  #countStrikes(denial: Denial, checks: readonly Check[], nowMs: number): boolean {
    let struck: Check[] | undefined
    for (const check of checks) {
      if (algorithmOf(check.policy).counts !== 'strikes') continue
      // The key may have been blocked since.
      if (this.#isChangedSince(check, denial.changes)) return false
      const block = this.#denials.get(check.policy.id, check.key)
      if (!check.policy.countDenied || (block && this.#covers(block, check, nowMs))) continue
      // A known block may have ended.
      if (block || this.#strikes.isNextLast(check)) return false
      struck ??= []
      struck.push(check)
    }
    if (struck) for (const check of struck) this.#strikes.add(check, this.#ttlMs)
    return true
  }

  #isChangedSince(check: Check, changes: number): boolean {
    if (changes >= this.#changes) return false
    if (changes < this.#allChanged) return true
    return (this.#changed.get(check.policy.id, check.key) ?? 0) > changes
  }

  /** Returns whether a denial holds for a check: same limit, and no lower cost. */
  #covers({ check: denied, outcome, askedAt }: Denial, check: Check, nowMs: number): boolean {
    if (check.policy !== denied.policy || check.key !== denied.key) return false
    if (check.limit !== denied.limit || check.cost < denied.cost) return false
    const elapsedMs = nowMs - askedAt
    return elapsedMs >= 0 && elapsedMs < Math.min(outcome.retryAfterMs, this.#ttlMs)
  }
}

/** Returns whether the store has to count each denial at once. Strikes may reach it later. */
function mustBeCounted({ policy }: Check): boolean {
  return policy.countDenied && algorithmOf(policy).counts !== 'strikes'
}

/** Returns a denial as of now. For a higher cost than the denied one, the wait is a minimum. */
function countedDown(
  { outcome: denied, answeredAt }: Denial,
  check: Check,
  nowMs: number,
): Outcome {
  const { remaining, resetMs, retryAfterMs } = denied
  const elapsedMs = Math.max(0, nowMs - answeredAt)
  const never = check.cost > algorithmOf(check.policy).capacity(check)
  const left = (ms: number): number => Math.max(1, Math.ceil(ms - elapsedMs))
  const outcome = new CheckOutcome(check).denyFor(
    never ? Number.POSITIVE_INFINITY : left(retryAfterMs),
  )
  outcome.remaining = remaining
  outcome.resetMs = resetMs === undefined || never ? resetMs : left(resetMs)
  return outcome
}

const known = processWide('@sluice/core/denials/2', () => new WeakMap<Store, Denials>())

/** Returns the cached denials of a store, or `undefined` if none may be cached. */
export function denialsOf(store: Store): Denials | undefined {
  const { ttlMs = 0 } = store.denials ?? {}
  if (ttlMs === 0) return undefined
  const denials = known.get(store) ?? new Denials(store, ttlMs)
  known.set(store, denials)
  return denials
}

/** Changes keys in a store, and forgets their denials. */
export function applyChange(
  store: Store,
  change: Change,
  cancellation?: Cancellation,
): MaybePromise<readonly boolean[]> {
  const isManual = change.op === 'reset' || change.op === 'block'
  return forgetting(store, change.checks, () => store.change(change, cancellation), isManual)
}

/** Forgets the denials of keys before a call that frees units, and after its answer. */
export function forgetting<T>(
  store: Store,
  keys: readonly CountedKey[],
  ask: () => MaybePromise<T>,
  isManual = false,
): MaybePromise<T> {
  const denials = denialsOf(store)
  const forget = () => (isManual ? denials?.forgetAll(keys) : denials?.forget(keys))
  forget()
  const answer = ask()
  if (denials && isPromise(answer)) answer.then(forget, forget)
  return answer
}
