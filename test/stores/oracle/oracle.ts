import type { Check, StoreOp } from '@sluice/core'
import { testedAlgorithms } from '../algorithm-policy.ts'
import type { Expected, Life } from './life.ts'
import { PenaltyLife } from './penalty-life.ts'

/** The place of an oracle in a trace: what was taken under which receipt. */
export interface OracleReceipt {
  check: Check
  at: number
  /** The life of the key: one that was reset is another object. */
  life: Life
  /** How often the clock had been set back. */
  steps: number
}

type Receipts = readonly (OracleReceipt | undefined)[]

interface Answer {
  expected: Expected[]
  receipts: (OracleReceipt | undefined)[]
}

/** The obvious limiter, without cleverness and without bounds. Written from the design alone, for the tests. */
export class Oracle {
  readonly #lives = new Map<string, Life>()
  readonly #ends: number[] = []
  /** Lives that did not end by themselves. */
  readonly #ended = new WeakSet<Life>()
  #latest = Number.NEGATIVE_INFINITY
  #now = Number.NEGATIVE_INFINITY
  #steps = 0

  /**
   * Whether the clock may step to `now` without reviving units that have expired: whether those are still stored then is left to a
   * store. It never gives a client more or less than its window, which the properties check.
   */
  mayStepTo(now: number): boolean {
    return !this.#ends.some((end) => end <= this.#latest && end > now)
  }

  /** Lets the clock step. */
  stepTo(now: number): void {
    if (now < this.#now) this.#steps += 1
    this.#now = now
    this.#latest = Math.max(this.#latest, now)
  }

  /**
   * Whether it is certain that a receipt reaches nothing, or its own life: stores tell lives that ended by themselves by their times,
   * which say less when the clock was set back since. A window that begins at a fixed time may then even begin again after a reset.
   */
  maySettle({ check, life, steps }: OracleReceipt): boolean {
    const isCurrent = life === this.#of(check) && !life.isOver(check, this.#now)
    const { algorithm, clockAligned, calendar } = check.policy
    const beginsAgain = algorithm === 'sliding-counter' || clockAligned || calendar !== undefined
    return steps === this.#steps || isCurrent || (!beginsAgain && this.#ended.has(life))
  }

  apply(
    op: StoreOp,
    checks: readonly Check[],
    { now, receipts = [] }: { now: number; receipts?: Receipts },
  ): Answer {
    if (op === 'peek') {
      const expected = checks.map((check) => this.#of(check).copy().expected(check, now))
      const isAllowed = expected.every(({ allowed }) => allowed)
      return {
        expected: expected.map((one) => ({ ...one, delayMs: isAllowed ? one.delayMs : 0 })),
        receipts: [],
      }
    }
    for (const check of checks) this.#ends.push(...this.#of(check).settle(check, now))
    if (op === 'consume') return this.#consume(checks, now)
    if (op === 'renew') return this.#renew(checks, receipts, now)
    if (op === 'charge') {
      const taken = checks.map((check) => this.#take(check, now))
      return { expected: checks.map((check) => this.#passed(check, now)), receipts: taken }
    }
    const expected = checks.map((check, index) => {
      const allowed =
        op === 'block'
          ? this.#block(check, now)
          : op === 'reset'
            ? this.#reset(check, now)
            : this.#giveBack(check, receipts[index], now)
      return { ...this.#passed(check, now), allowed }
    })
    return { expected, receipts: checks.map(() => undefined) }
  }

  #consume(checks: readonly Check[], now: number): Answer {
    const before = checks.map((check) => this.#of(check).expected(check, now))
    if (before.every(({ allowed }) => allowed)) {
      // A penalty takes nothing of what is allowed.
      const receipts = checks.map((check) =>
        isPenalty(check) ? undefined : this.#take(check, now),
      )
      const expected = checks.map((check, index) => ({
        ...this.#passed(check, now),
        delayMs: before[index]?.delayMs ?? 0,
      }))
      return { expected, receipts }
    }
    const expected = checks.map((check, index) => {
      const known = before[index]
      if (known && !(check.policy.countDenied && check.cost > 0 && check.limit > 0)) {
        return { ...known, delayMs: 0 }
      }
      this.#take(check, now)
      const after = this.#of(check).expected(check, now)
      // The last strike blocks its own request.
      const allowed = isPenalty(check) ? after.allowed : known?.allowed === true
      return { ...after, allowed, delayMs: 0 }
    })
    return { expected, receipts: checks.map(() => undefined) }
  }

  #of(check: Check): Life {
    const known = this.#lives.get(nameOf(check))
    if (known) return known
    const life = lifeOf(check)
    this.#lives.set(nameOf(check), life)
    return life
  }

  #end(check: Check, byItself = false): void {
    if (!byItself) this.#ended.add(this.#of(check))
    this.#lives.delete(nameOf(check))
  }

  #take(check: Check, now: number): OracleReceipt | undefined {
    if (check.cost === 0 || check.limit === 0) return undefined
    // Once all that a key held has expired, what comes is another life of it.
    if (this.#of(check).isOver(check, now)) this.#lives.delete(nameOf(check))
    const life = this.#of(check)
    if (life.overflows?.(check, now)) {
      // Neither the receipts so far nor this one reach what the key has from now on.
      this.#end(check)
      this.#lives.set(nameOf(check), life.copy())
    }
    const { at, ends } = this.#of(check).take(check, now)
    this.#ends.push(...ends)
    return isPenalty(check) ? undefined : { check, at, life, steps: this.#steps }
  }

  #block(check: Check, now: number): boolean {
    if (this.#of(check).isOver(check, now)) this.#lives.delete(nameOf(check))
    const { found = false, ends = [] } = this.#of(check).block?.(check, now) ?? {}
    this.#ends.push(...ends)
    return found
  }

  #reset(check: Check, now: number): boolean {
    const isFound = this.#of(check).used(check, now) > 0n
    this.#end(check, this.#of(check).isOver(check, now))
    return isFound
  }

  #giveBack(check: Check, receipt: OracleReceipt | undefined, now: number): boolean {
    const life = this.#of(check)
    if (!receipt || receipt.life !== life) return false
    const wasOver = life.isOver(check, now)
    const { given = false, isGone } = life.giveBack?.(check, receipt.at, now) ?? {}
    if (isGone) this.#end(check, wasOver)
    return given
  }

  #renew(checks: readonly Check[], receipts: Receipts, now: number): Answer {
    const expected = checks.map((check, index) => {
      const life = this.#of(check)
      const receipt = receipts[index]
      const renewed = receipt?.life === life ? life.renew?.(check, receipt.at, now) : undefined
      const { held = false, ends = [] } = renewed ?? {}
      this.#ends.push(...ends)
      const retryAfterMs = held ? 0 : check.policy.retryMs
      return { ...this.#passed(check, now), allowed: held, retryAfterMs }
    })
    return { expected, receipts: [] }
  }

  #passed(check: Check, now: number): Expected {
    const expected = this.#of(check).expected(check, now)
    return { ...expected, allowed: true, retryAfterMs: 0, delayMs: 0 }
  }
}

function lifeOf({ policy }: Check): Life {
  const { algorithm } = policy
  return algorithm === 'penalty' ? new PenaltyLife() : testedAlgorithms[algorithm].newLife()
}

function isPenalty({ policy }: Check): boolean {
  return policy.algorithm === 'penalty'
}

function nameOf({ policy, key }: Check): string {
  return JSON.stringify([policy.id, key])
}
