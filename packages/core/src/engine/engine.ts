import type { KeyState } from '../algorithms/algorithm.ts'
import { algorithmOf } from '../algorithms/table.ts'
import {
  type BlockCheck,
  type Check,
  type GrantCheck,
  type Held,
  Receipt,
  type ResetCheck,
} from '../model/check.ts'
import type { Change, DecidingOp, Granted, Outcome } from '../model/store.ts'
import { SluiceError } from '../options/errors.ts'
import { CheckOutcome, leavesTrace, outcomeOf, waitMs } from './outcome.ts'

/**
 * Decides the checks of one request, for any backend, in one synchronous step that reads and
 * changes the states. `now` is in ms since the epoch, by the store's clock. Answers are in the
 * order of the checks.
 */
export const engine: Engine = {
  consume,
  peek,
  charge: (states, checks, now) =>
    checks.map((check) => charge(states, { check, now, state: stateOf(states, check, now) })),
  change,
  grant: (states, checks, now) => checks.map((check) => grant(states, check, now)),
}

type Call<Question, Answer> = (states: States, question: Question, now: number) => readonly Answer[]

interface Engine extends Readonly<Record<DecidingOp, Call<readonly Check[], Outcome>>> {
  readonly change: Call<Change, boolean>
  readonly grant: Call<readonly GrantCheck[], Granted>
}

function change(states: States, { op, checks }: Change, now: number): readonly boolean[] {
  switch (op) {
    case 'refund':
    case 'release':
      return checks.map((check) => refund(states, check, now))
    case 'renew':
      return checks.map((check) => renew(states, check, now))
    case 'reset':
      return checks.map((check) => reset(states, check, now))
    case 'block':
      return checks.map((check) => block(states, check, now))
  }
}

/** A check with the state of its key; `undefined` for none. */
interface CheckedState {
  readonly check: Check
  readonly now: number
  state: KeyState | undefined
}

function consume(states: States, checks: readonly Check[], now: number): readonly Outcome[] {
  const only = checks[0]
  // Most requests have one check, and need no lists.
  if (only && checks.length === 1) return [consumeOne(states, only, now)]
  const found = checks.map((check) => ({ check, now, state: stateOf(states, check, now) }))
  const waits = found.map(waitOf)
  if (waits.some((wait) => wait > 0)) {
    return found.map((one, index) => denied(states, one, waits[index] ?? 0))
  }
  const { changes } = states
  return found.map((one) => {
    // Making room for one check may have evicted the key of another.
    if (states.changes !== changes) one.state = states.get(one.check, now)
    return takenAtOnce(states, one.check, one.state, now) ?? taken(states, one)
  })
}

function consumeOne(states: States, check: Check, now: number): Outcome {
  const state = states.get(check, now)
  const outcome = takenAtOnce(states, check, state, now)
  if (outcome) return outcome
  if (state) clamp(state, check, now)
  const found = { check, now, state }
  const wait = waitOf(found)
  return wait === 0 ? taken(states, found) : denied(states, found, wait)
}

/**
 * Takes a check by the fast path of its algorithm. Returns `undefined`, with nothing taken, where
 * the other functions have to decide.
 */
function takenAtOnce(
  states: States,
  check: Check,
  state: KeyState | undefined,
  now: number,
): Outcome | undefined {
  const { takeUsual, endsAt, capacity } = algorithmOf(check.policy)
  if (!takeUsual || !leavesTrace(check)) return undefined
  let counted = state
  let charge = counted && takeUsual(counted, check, now)
  if (!charge || !counted) {
    if (counted && endsAt(counted, check) > now) return undefined
    // A check that can never fit creates no state.
    if (check.cost > capacity(check)) return undefined
    counted = states.begin(check, now)
    charge = takeUsual(counted, check, now)
    if (!charge) return undefined
  }
  const outcome = new CheckOutcome(check)
  outcome.delayMs = charge.delayMs
  outcome.remaining = charge.remaining
  outcome.resetMs = charge.resetMs
  outcome.receipt = new Receipt(check, charge.at, states.incarnationOf(counted))
  return outcome
}

/**
 * Returns the outcome of a check in a denied request. It is charged only if its policy counts
 * denials.
 */
function denied(states: States, found: CheckedState, wait: number): Outcome {
  const { check, now } = found
  if (found.state) found.state.limit = check.limit
  if (!check.policy.countDenied || !leavesTrace(check)) {
    return outcomeOf(readableState(found), check, now).denyFor(wait)
  }
  const before = readableState(found)
  take(states, found)
  const isStrike = algorithmOf(check.policy).counts === 'strikes'
  // A store without room for the key counted no strike.
  const state = isStrike ? (states.get(check, now) ?? before) : readableState(found)
  const outcome = outcomeOf(state, check, now).denyFor(waitMs(state, check, now))
  // The last strike blocks its own request. Units never deny the request they count.
  if (!isStrike) outcome.allowed = wait === 0
  return outcome
}

function taken(states: States, found: CheckedState): Outcome {
  const { check, now, state } = found
  const { counts, delayMs } = algorithmOf(check.policy)
  if (counts === 'strikes') return outcomeOf(readableState(found), check, now)
  return charge(states, found, state && delayMs?.(state, check, now))
}

function charge(states: States, found: CheckedState, delayMs = 0): Outcome {
  const { check, now } = found
  if (!leavesTrace(check)) return outcomeOf(readableState(found), check, now)
  const receipt = take(states, found)
  const outcome = outcomeOf(readableState(found), check, now)
  outcome.delayMs = delayMs
  // Strikes cannot be refunded.
  if (algorithmOf(check.policy).counts !== 'strikes') outcome.receipt = receipt
  return outcome
}

function peek(states: States, checks: readonly Check[], now: number): readonly Outcome[] {
  const found = checks.map((check) => {
    const algorithm = algorithmOf(check.policy)
    const state = states.get(check, now)
    return { check, state: state ? algorithm.clamp(state, check, now) : algorithm.create() }
  })
  const waits = found.map(({ check, state }) => waitMs(state, check, now))
  const isAllowed = waits.every((wait) => wait === 0)
  return found.map(({ check, state }, index) => {
    const outcome = outcomeOf(state, check, now).denyFor(waits[index] ?? 0)
    if (isAllowed) outcome.delayMs = algorithmOf(check.policy).delayMs?.(state, check, now) ?? 0
    return outcome
  })
}

function refund(states: States, held: Held, now: number): boolean {
  const state = stateOfHeld(states, held, now)
  const algorithm = algorithmOf(held.policy)
  if (!state) return false
  const isGivenBack = algorithm.giveBack(state, held, now)
  // A key without units is deleted, so that no receipt applies to its next state.
  if (algorithm.endsAt(state, held) <= now) states.delete(held)
  return isGivenBack
}

function renew(states: States, held: Held, now: number): boolean {
  const state = stateOfHeld(states, held, now)
  return state !== undefined && algorithmOf(held.policy).renew?.(state, held, now) === true
}

/** Returns the state that a receipt belongs to. */
function stateOfHeld(states: States, held: Held, now: number): KeyState | undefined {
  const state = stateOf(states, held, now)
  return state && held.receipt.incarnation === states.incarnationOf(state) ? state : undefined
}

function reset(states: States, { closed, ...check }: ResetCheck, now: number): boolean {
  const { used, afterReset } = algorithmOf(check.policy)
  const state = stateOf(states, check, now)
  const units = state ? used(state, check, now) : 0
  const isFound = states.delete(check) && units > 0
  const kept = state && afterReset?.(state, closed)
  if (!kept) return isFound
  return used(Object.assign(states.begin(check, now), kept), check, now) < units
}

function grant(states: States, { terms, ...check }: GrantCheck, now: number): Granted {
  const { takeGrant } = algorithmOf(check.policy)
  const found = { check, now, state: stateOf(states, check, now) }
  const state = takeGrant ? living(found, states) : readableState(found)
  const { units, settledAt } = takeGrant?.(state, { ...check, terms }, now) ?? { units: 0 }
  const { remaining, resetMs } = outcomeOf(state, check, now)
  const settled =
    settledAt === undefined ? undefined : new Receipt(check, settledAt, states.incarnationOf(state))
  return { units, remaining, resetMs, settled }
}

function block(states: States, blocked: BlockCheck, now: number): boolean {
  const check = { ...blocked, cost: 0 }
  const algorithm = algorithmOf(check.policy)
  const state = living({ check, now, state: stateOf(states, check, now) }, states)
  const isFound = algorithm.msUntil(state, check, { now, target: 0 }) > 0
  algorithm.block?.(state, check, now)
  if (states.get(check, now) === state) return isFound
  throw new SluiceError(
    'SLUICE_STORE_FAILED',
    'the store is full of keys that are exhausted, so nothing was blocked; raise the maxKeys of memoryStore()',
  )
}

/**
 * Returns a key's state, with its times clamped to `now`. It stays the same object, since receipts
 * refer to it.
 */
function stateOf(states: States, check: Check, now: number): KeyState | undefined {
  const state = states.get(check, now)
  if (state) clamp(state, check, now)
  return state
}

function clamp(state: KeyState, check: Check, now: number): void {
  const clamped = algorithmOf(check.policy).clamp(state, check, now)
  if (clamped !== state) Object.assign(state, clamped)
}

/** Takes the units of a check, and puts the state that counts them into `found`. */
function take(states: States, found: CheckedState): Receipt {
  const { check, now } = found
  const algorithm = algorithmOf(check.policy)
  let state = living(found, states)
  const incarnation = states.incarnationOf(state)
  // If units are lost, the key gets a new incarnation, so that no receipt applies to it, not even
  // this check's.
  if (algorithm.overflows?.(state, check, now)) {
    state = Object.assign(states.begin(check, now), state)
  }
  found.state = state
  return new Receipt(check, algorithm.take(state, check, now), incarnation)
}

/** Returns the state to write to: the one found, or a new one if it has expired. */
function living({ check, now, state }: CheckedState, states: States): KeyState {
  const lives = state !== undefined && algorithmOf(check.policy).endsAt(state, check) > now
  return lives ? state : states.begin(check, now)
}

function waitOf(found: CheckedState): number {
  return waitMs(readableState(found), found.check, found.now)
}

/** Returns the state found, or an empty one to read from. */
function readableState({ check, state }: Pick<CheckedState, 'check' | 'state'>): KeyState {
  return state ?? algorithmOf(check.policy).create()
}

/**
 * The states that the engine works on; each backend implements it. Nothing else may change them
 * meanwhile.
 */
export interface States {
  /** Returns the state of a check's key, if any. The engine mutates it. */
  get(check: Check, now: number): KeyState | undefined
  /** Starts a new incarnation of the key, with an empty state that replaces the old one. */
  begin(check: Check, now: number): KeyState
  /** Deletes the key. Returns whether there was a state. */
  delete(check: Check): boolean
  /**
   * Returns the incarnation that a state belongs to. Receipts carry it, so that a refund after a
   * reset has no effect.
   */
  incarnationOf(state: KeyState): unknown
  /** Changes whenever a key is added or dropped: states found earlier may be outdated. */
  readonly changes: number
}
