import { algorithms, type Check, type Outcome, type Policy } from '@sluice/core'
import { LRUCache } from 'lru-cache'
import { type Answer, isFailure } from './reply.ts'
import type { Row } from './row.ts'
import { type Charge, Strikes } from './strikes.ts'
import { unknownOutcome } from './unknown-outcome.ts'

/** A request that the store denied, which denies the like of it while nothing can have changed. */
interface Denial {
  readonly row: Row
  readonly outcomes: readonly Outcome[]
  /** When it was sent: Redis cannot have decided earlier. */
  readonly sentAt: number
  /** When the answer came: Redis cannot have decided later. */
  readonly answeredAt: number
  /** How many settlements there had been when it was sent. */
  readonly settlements: number
}

/** What was known when a call was sent, for the answer to it. */
export interface SentCall {
  readonly at: number
  /** How many settlements there had been: for all rows, or for each. */
  readonly settlements: number | readonly number[]
}

/** The same for one row. */
interface Sent {
  readonly at: number
  /** How many settlements there had been. */
  readonly settlements: number
}

const mostDenials = 10_000

/**
 * Denials that still hold, so that a flood of refused requests costs Redis nothing. Once a policy has denied a key, it denies it until
 * `retryAfterMs` have passed, unless something is given back, forgotten, or allowed more: what this process does of that counts at once,
 * what others do after `ttlMs` at the latest.
 */
export class Denials {
  readonly #ttlMs: number
  readonly #clock: () => number
  readonly #denials = new LRUCache<string, Denial>({ max: mostDenials })
  /** Keys that something was given back to, or that were forgotten, and the number of that settlement. */
  readonly #settled = new LRUCache<string, number>({ max: mostDenials })
  readonly #strikes: Strikes
  #settlements = 0

  /**
   * @param ttlMs how long a denial is believed at most; 0: never
   * @param clock milliseconds that never step, except in simulations
   * @param charge has the store count denials that are strikes for a penalty
   */
  constructor(ttlMs: number, clock: () => number, charge: Charge) {
    this.#ttlMs = ttlMs
    this.#clock = clock
    this.#strikes = new Strikes(ttlMs, charge)
  }

  /** The outcomes of a request that is denied for certain; `undefined` when the store has to be asked. */
  answer(row: Row): readonly Outcome[] | undefined {
    if (this.#ttlMs === 0 || (row.op !== 'consume' && row.op !== 'peek')) return undefined
    const outcomes = row.op === 'consume' ? this.#answerHere(row) : undefined
    if (!outcomes) this.#strikes.tell(row.keys)
    return outcomes
  }

  #answerHere(row: Row): readonly Outcome[] | undefined {
    if (this.#denials.size === 0) return undefined
    // A penalty stands last, and what it denies is no strike.
    for (let index = row.keys.length - 1; index >= 0; index -= 1) {
      const check = row.checks[index]
      const denial = this.#denials.peek(row.keys[index] ?? '')
      if (!check || !denial || !this.#covers(denial, row.keys[index] ?? '', check)) continue
      if (row.checks.some(mustBeCounted)) return undefined
      return this.#isStruck(denial, row) ? this.#retell(denial, row) : undefined
    }
    return undefined
  }

  /** Has the store count the strikes that it has not been told of. */
  settle(): void {
    this.#strikes.settle()
  }

  /** Makes a denial that holds a strike for the penalties of the row, if it has any. Returns false where the store has to be asked what they say. */
  #isStruck(denial: Denial, { keys, checks }: Row): boolean {
    const struck: [string, Check][] = []
    for (let index = 0; index < keys.length; index += 1) {
      const check = checks[index]
      const key = keys[index] ?? ''
      if (!check || !countsStrikes(check.policy)) continue
      // It may be blocked by now.
      if (this.#isSettledSince(key, denial.settlements)) return false
      const own = this.#denials.peek(key)
      if (!check.policy.countDenied || (own && this.#covers(own, key, check))) continue
      const outcome = denial.outcomes[denial.row.keys.indexOf(key)]
      if (outcome && !outcome.allowed) {
        // That the key was blocked is believed no longer than the block lasts.
        if (this.#covers(denial, key, check)) continue
        return false
      }
      if (this.#strikes.isNextLast(key, check)) return false
      struck.push([key, check])
    }
    for (const [key, check] of struck) this.#strikes.add(key, check)
    return true
  }

  /** To be told of the rows of every call when it is sent. */
  send(rows: readonly Row[]): SentCall {
    const at = this.#clock()
    let settlements: number[] | undefined
    for (let i = 0; i < rows.length; i += 1) {
      const row = rows[i]
      if (row && row.op !== 'consume' && row.op !== 'peek') {
        settlements ??= rows.map(() => this.#settlements)
        this.#settle(row)
        settlements.fill(this.#settlements, i)
      }
    }
    return { at, settlements: settlements ?? this.#settlements }
  }

  #settle({ op, keys }: Row): void {
    this.#settlements += 1
    for (const key of keys) {
      this.#denials.delete(key)
      this.#settled.set(key, this.#settlements)
      if (op === 'reset' || op === 'block') this.#strikes.forget(key)
    }
  }

  /** To be told of the answers to every call. */
  learnAll(rows: readonly Row[], answers: readonly Answer[], sent: SentCall): void {
    if (this.#ttlMs === 0) return
    for (let i = 0; i < rows.length; i += 1) {
      const row = rows[i]
      const answer = answers[i]
      if (row?.op !== 'consume' || !answer || isFailure(answer)) continue
      const { at, settlements } = sent
      const known = typeof settlements === 'number' ? settlements : (settlements[i] ?? 0)
      this.#learn(row, answer, { at, settlements: known })
    }
  }

  #learn(row: Row, outcomes: readonly Outcome[], sent: Sent): void {
    const index = longestDenial(outcomes)
    if (index < 0) return
    const { at, settlements } = sent
    this.#learnStrikes(row, outcomes, settlements)
    const key = row.keys[index] ?? ''
    if (this.#isSettledSince(key, settlements)) return
    // Not the row itself: whoever waits for it may hold a whole request.
    const { op, checks, keys } = row
    const denied = { op, checks, keys }
    this.#denials.set(key, {
      row: denied,
      outcomes,
      sentAt: at,
      answeredAt: this.#clock(),
      settlements,
    })
  }

  #learnStrikes({ keys }: Row, outcomes: readonly Outcome[], settlements: number): void {
    for (const [index, { policy, allowed, remaining }] of outcomes.entries()) {
      const key = keys[index] ?? ''
      if (!countsStrikes(policy) || !allowed || remaining === undefined) continue
      if (!this.#isSettledSince(key, settlements)) this.#strikes.learn(key, remaining)
    }
  }

  #isSettledSince(key: string, settlements: number): boolean {
    return (this.#settled.peek(key) ?? 0) > settlements
  }

  #covers(denial: Denial, key: string, { policy, limit, cost }: Check): boolean {
    const index = denial.row.keys.indexOf(key)
    const outcome = denial.outcomes[index]
    const denied = denial.row.checks[index]
    if (!outcome || !denied || policy !== denied.policy || limit !== denied.limit) return false
    const elapsedMs = this.#clock() - denial.sentAt
    const holdsMs = Math.min(outcome.retryAfterMs, this.#ttlMs)
    return cost >= denied.cost && elapsedMs >= 0 && elapsedMs < holdsMs
  }

  /** What the denied request was told, as of now; what nobody knows about this one is left open. */
  #retell(denial: Denial, row: Row): readonly Outcome[] {
    const { row: known, outcomes, answeredAt, settlements } = denial
    const elapsedMs = Math.max(0, this.#clock() - answeredAt)
    return row.checks.map((check, index) => {
      const key = row.keys[index] ?? ''
      const at = known.keys.indexOf(key)
      const outcome = at < 0 ? undefined : outcomes[at]
      if (outcome?.limit !== check.limit || this.#isSettledSince(key, settlements)) {
        return unknownOutcome(check)
      }
      if (!outcome.allowed && check.cost >= (known.checks[at]?.cost ?? 0)) {
        return never(check)
          ? { ...outcome, retryAfterMs: Number.POSITIVE_INFINITY }
          : countedDown(outcome, elapsedMs)
      }
      return { ...unknownOutcome(check), remaining: outcome.remaining, resetMs: outcome.resetMs }
    })
  }
}

/** Of a denied request, the policy that denies it longest: one is enough to know it by. −1 where none denies for certain. */
function longestDenial(outcomes: readonly Outcome[]): number {
  let longest = -1
  for (let index = 0; index < outcomes.length; index += 1) {
    const outcome = outcomes[index]
    if (!outcome || outcome.allowed || !isLasting(outcome)) continue
    if (outcome.retryAfterMs > (outcomes[longest]?.retryAfterMs ?? 0)) longest = index
  }
  return longest
}

/** Leases can be given back at any time; and a denial that counts has to be counted. */
function isLasting({ policy }: Outcome): boolean {
  return algorithms[policy.algorithm].counts !== 'leases' && !mustBeCounted({ policy })
}

/** Whether the store has to count each denial for itself: strikes can be told it later, several at once. */
function mustBeCounted({ policy }: Pick<Check, 'policy'>): boolean {
  return policy.countDenied && !countsStrikes(policy)
}

function countsStrikes({ algorithm }: Policy): boolean {
  return algorithms[algorithm].counts === 'strikes'
}

/** Whether no wait helps. For another cost than the one that was denied, the wait that is told is the least. */
function never(check: Check): boolean {
  return check.cost > algorithms[check.policy.algorithm].capacity(check)
}

function countedDown(outcome: Outcome, elapsedMs: number): Outcome {
  const { resetMs, retryAfterMs } = outcome
  return {
    ...outcome,
    resetMs: resetMs === undefined ? undefined : Math.max(1, Math.ceil(resetMs - elapsedMs)),
    retryAfterMs: Math.max(1, Math.ceil(retryAfterMs - elapsedMs)),
  }
}
