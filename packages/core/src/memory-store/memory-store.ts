import type { Algorithm, Counted } from '../algorithms/algorithm.ts'
import { delayOf, leavesTrace, outcomeOf, waitMs } from '../algorithms/counter.ts'
import { algorithms } from '../algorithms/table.ts'
import type { Check } from '../check.ts'
import { Receipt } from '../check.ts'
import { SluiceError } from '../errors.ts'
import { given, knownFields, wholeNumber } from '../options.ts'
import { processWide } from '../process-wide.ts'
import type { Outcome, Store, StoreOp } from '../store.ts'
import { Cells } from './cells.ts'

export interface MemoryStoreOptions {
  /**
   * The most keys that are held. At the cap, expired ones go first, then the least used of a sample; one that is
   * exhausted never goes: when a whole sample is, new keys share one of 64 overflow buckets.
   * @default 100_000
   */
  maxKeys?: number
}

/** A store in this process: synchronous, bounded, without timers. */
export interface MemoryStore extends Store {
  apply(op: StoreOp, checks: readonly Check[]): readonly Outcome[]
  /** Keys held now, those not counted that have expired and not yet been swept. */
  readonly size: number
}

/** Counts in memory. The clock is `Date.now()`, read at each call, so that a faked one is obeyed. */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  knownFields(options, 'memoryStore', ['maxKeys'])
  const cells = new Cells(
    wholeNumber(given(options.maxKeys, 100_000), { option: 'maxKeys' }, { min: 1 }),
  )
  const store = {
    apply: (op: StoreOp, checks: readonly Check[]) => operations[op](cells, checks, Date.now()),
    get size() {
      return cells.size
    },
  }
  made.add(store)
  return store
}

const made = processWide('@sluice/core/memory-stores/1', () => new WeakSet<object>())

/** Whether a store was made here, and so is bounded and answers at once. */
export function isMemoryStore(store: unknown): store is MemoryStore {
  return typeof store === 'object' && store !== null && made.has(store)
}

type Operation = (cells: Cells, checks: readonly Check[], now: number) => readonly Outcome[]

const operations: { readonly [op in StoreOp]: Operation } = {
  consume,
  peek,
  charge: (cells, checks, now) =>
    checks.map((check) => charge(cells, { check, now, state: settled(cells, check, now) })),
  refund: (cells, checks, now) => checks.map((check) => refund(cells, check, now)),
  release: (cells, checks, now) => checks.map((check) => refund(cells, check, now)),
  renew: (cells, checks, now) => checks.map((check) => renew(cells, check, now)),
  reset: (cells, checks, now) => checks.map((check) => reset(cells, check, now)),
  block: (cells, checks, now) => checks.map((check) => block(cells, check, now)),
}

/** One check, and what its key had taken when it was looked up: `undefined` for nothing. */
interface Found {
  readonly check: Check
  readonly now: number
  readonly state: Counted | undefined
}

function consume(cells: Cells, checks: readonly Check[], now: number): readonly Outcome[] {
  const [only] = checks
  // Most requests have one check, which needs no lists.
  if (only && checks.length === 1) {
    const found = { check: only, now, state: settled(cells, only, now) }
    const wait = waitOf(found)
    return [wait === 0 ? taken(cells, found) : denied(cells, found, wait)]
  }
  const found = checks.map((check) => ({ check, now, state: settled(cells, check, now) }))
  const waits = found.map(waitOf)
  if (waits.some((wait) => wait > 0)) {
    return found.map((one, index) => denied(cells, one, waits[index] ?? 0))
  }
  const { changes } = cells
  return found.map((one) =>
    // What makes room for one check may have dropped the key of another.
    taken(cells, cells.changes === changes ? one : { ...one, state: cells.get(one.check, now) }),
  )
}

/** What a check comes to when its request is denied: charged only where denials count. */
function denied(cells: Cells, found: Found, wait: number): Outcome {
  const { check, now } = found
  if (!check.policy.countDenied || !leavesTrace(check)) {
    return outcomeOf(counterOf(found), check, { now, retryAfterMs: wait })
  }
  const state = take(cells, found).state
  // Where there is no room to count, nothing came of it.
  const isKept = check.policy.algorithm !== 'penalty' || cells.get(check, now) === state
  if (!isKept) return outcomeOf(counterOf(found), check, { now, retryAfterMs: wait })
  const counter = { algorithm: algorithmOf(check), state }
  return outcomeOf(counter, check, { now, retryAfterMs: waitMs(counter, check, now) })
}

function taken(cells: Cells, found: Found): Outcome {
  const { check, now, state } = found
  if (check.policy.algorithm === 'penalty') {
    return outcomeOf(counterOf(found), check, { now, retryAfterMs: 0 })
  }
  const delayMs = state ? delayOf({ algorithm: algorithmOf(check), state }, check, now) : 0
  return charge(cells, found, delayMs)
}

function charge(cells: Cells, found: Found, delayMs = 0): Outcome {
  const { check, now } = found
  if (!leavesTrace(check)) return outcomeOf(counterOf(found), check, { now, retryAfterMs: 0 })
  const { state, at, incarnation } = take(cells, found)
  const counter = { algorithm: algorithmOf(check), state }
  // Strikes are not given back.
  const isStrike = check.policy.algorithm === 'penalty'
  const receipt = isStrike ? undefined : new Receipt(check, at, incarnation)
  return outcomeOf(counter, check, { now, retryAfterMs: 0, delayMs, receipt })
}

function peek(cells: Cells, checks: readonly Check[], now: number): readonly Outcome[] {
  const counters = checks.map((check) => {
    const algorithm = algorithmOf(check)
    const state = cells.get(check, now)
    return {
      algorithm,
      check,
      state: state ? algorithm.settle(state, check, now) : algorithm.create(),
    }
  })
  const waits = counters.map((counter) => waitMs(counter, counter.check, now))
  const isAllowed = waits.every((wait) => wait === 0)
  return counters.map((counter, index) =>
    outcomeOf(counter, counter.check, {
      now,
      retryAfterMs: waits[index] ?? 0,
      delayMs: isAllowed ? delayOf(counter, counter.check, now) : 0,
    }),
  )
}

function refund(cells: Cells, check: Check, now: number): Outcome {
  const state = settled(cells, check, now)
  const algorithm = algorithmOf(check)
  let isGivenBack = false
  if (state && check.receipt?.incarnation === state) {
    isGivenBack = algorithm.giveBack(state, check, { now, at: check.receipt.at })
    // A key that nothing is left of ends its life, so that no receipt reaches what comes after.
    if (algorithm.endsAt(state, check) <= now) cells.delete(check)
  }
  return settledOutcome({ check, now, state }, isGivenBack)
}

/** @param isFound whether there was anything to settle */
function settledOutcome(found: Found, isFound: boolean): Outcome {
  const { check, now } = found
  const outcome = outcomeOf(counterOf(found), check, { now, retryAfterMs: 0 })
  return isFound ? outcome : { ...outcome, allowed: false }
}

function renew(cells: Cells, check: Check, now: number): Outcome {
  const state = settled(cells, check, now)
  const { receipt, policy } = check
  const isHeld =
    state !== undefined &&
    receipt?.incarnation === state &&
    algorithmOf(check).renew?.(state, check, { now, at: receipt.at }) === true
  const retryAfterMs = isHeld ? 0 : policy.retryMs
  return outcomeOf(counterOf({ check, now, state }), check, { now, retryAfterMs })
}

function reset(cells: Cells, check: Check, now: number): Outcome {
  const state = settled(cells, check, now)
  const used = state ? algorithmOf(check).used(state, check, now) : 0
  const isFound = cells.delete(check) && used > 0
  return settledOutcome({ check, now, state: undefined }, isFound)
}

function block(cells: Cells, check: Check, now: number): Outcome {
  const algorithm = algorithmOf(check)
  const state = living({ check, now, state: settled(cells, check, now) }, cells)
  const isFound = algorithm.msUntil(state, check, { now, target: 0 }) > 0
  algorithm.block?.(state, check, now)
  if (cells.get(check, now) === state) return settledOutcome({ check, now, state }, isFound)
  throw new SluiceError(
    'SLUICE_STORE_FAILED',
    'the memory store is full of keys that are exhausted, so nothing was blocked; raise its maxKeys',
  )
}

/** What a key has taken, with no time in it later than `now`; it stays the same object, since receipts know it. */
function settled(cells: Cells, check: Check, now: number): Counted | undefined {
  const state = cells.get(check, now)
  if (!state) return undefined
  const repaired = algorithmOf(check).settle(state, check, now)
  return repaired === state ? state : Object.assign(state, repaired)
}

interface Taken {
  readonly state: Counted
  /** What a refund has to name. */
  readonly at: number
  readonly incarnation: Counted
}

function take(cells: Cells, found: Found): Taken {
  const { check, now } = found
  const algorithm = algorithmOf(check)
  const state = living(found, cells)
  if (!algorithm.overflows?.(state, check, now)) {
    return { state, at: algorithm.take(state, check, now), incarnation: state }
  }
  // Units are lost: the key goes on in another incarnation, so that no receipt reaches it, this one's neither.
  const next = Object.assign(cells.begin(check, now), state)
  return { state: next, at: algorithm.take(next, check, now), incarnation: state }
}

/** The state to write to: that which was found, or a new one where all of it has expired. */
function living({ check, now, state }: Found, cells: Cells): Counted {
  const lives = state !== undefined && algorithmOf(check).endsAt(state, check) > now
  return lives ? state : cells.begin(check, now)
}

function waitOf(found: Found): number {
  return waitMs(counterOf(found), found.check, found.now)
}

function counterOf({ check, state }: Pick<Found, 'check' | 'state'> & { now?: number }): {
  algorithm: Algorithm<Counted>
  state: Counted
} {
  const algorithm = algorithmOf(check)
  return { algorithm, state: state ?? algorithm.create() }
}

function algorithmOf({ policy }: Check): Algorithm<Counted> {
  return algorithms[policy.algorithm]
}
