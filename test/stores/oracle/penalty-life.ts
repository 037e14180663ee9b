import type { Check } from '@sluice/core'
import type { Expected, Life } from './life.ts'

interface Block {
  until: number
  readonly askedMs: number
}

/** The strikes of one key one by one, and its block. */
export class PenaltyLife implements Life {
  #strikes: number[] = []
  #block: Block | undefined
  /** How long the last block was that strikes have led to. */
  #lastMs = 0

  copy(): Life {
    const copy = new PenaltyLife()
    copy.#strikes = [...this.#strikes]
    copy.#block = this.#block && { ...this.#block }
    copy.#lastMs = this.#lastMs
    return copy
  }

  settle(check: Check, now: number): number[] {
    const isLate = this.#strikes.some((time) => time > now)
    this.#strikes = this.#strikes.map((time) => Math.min(time, now))
    const latest = now + (this.#block?.askedMs ?? 0)
    const isBlockLate = this.#block !== undefined && this.#block.until > latest
    if (this.#block && isBlockLate) this.#block.until = latest
    return isLate || isBlockLate ? this.#ends(check) : []
  }

  isOver(check: Check, now: number): boolean {
    return this.#ends(check).every((end) => end <= now)
  }

  take(check: Check, now: number): { at: number; ends: number[] } {
    const { penalty, windowMs } = check.policy
    if (!penalty || this.#isBlocked(now)) return { at: now, ends: [] }
    if (this.#counted(check, now) === 0) this.#strikes = []
    for (let i = 0; i < check.cost; i += 1) this.#strikes.push(now)
    if (this.#strikes.length >= check.limit) {
      const quietMs = Math.max(windowMs, this.#lastMs)
      const isRemembered = this.#lastMs > 0 && now < (this.#block?.until ?? 0) + quietMs
      const longer = Math.min(Math.floor(this.#lastMs * penalty.factor), penalty.maxMs)
      this.#lastMs = isRemembered ? longer : penalty.forMs
      this.#blockFor(this.#lastMs, now)
    }
    return { at: now, ends: this.#ends(check) }
  }

  used(check: Check, now: number): bigint {
    return BigInt(this.#isBlocked(now) ? check.limit : this.#counted(check, now))
  }

  block(check: Check, now: number): { found: boolean; ends: number[] } {
    const found = this.#isBlocked(now)
    this.#blockFor(check.cost, now)
    return { found, ends: this.#ends(check) }
  }

  expected(check: Check, now: number): Expected {
    this.settle(check, now)
    const denies = this.#isBlocked(now) && check.cost > 0
    return {
      allowed: !denies,
      limit: check.limit,
      remaining: this.#isBlocked(now) ? 0 : check.limit - this.#counted(check, now),
      resetMs: -1,
      retryAfterMs: denies ? (this.#block?.until ?? 0) - now : 0,
      delayMs: 0,
    }
  }

  #blockFor(askedMs: number, now: number): void {
    this.#block = { until: now + askedMs, askedMs }
    this.#strikes = []
  }

  #isBlocked(now: number): boolean {
    return this.#block !== undefined && now < this.#block.until
  }

  /** All strikes count until the window of the first is over. */
  #counted({ policy }: Check, now: number): number {
    const [first] = this.#strikes
    return first !== undefined && now < first + policy.windowMs ? this.#strikes.length : 0
  }

  #ends({ policy: { windowMs } }: Check): number[] {
    const strikes = this.#strikes.slice(0, 1).map((first) => first + windowMs)
    if (!this.#block) return strikes
    const { until } = this.#block
    return [...strikes, until, this.#lastMs > 0 ? until + Math.max(windowMs, this.#lastMs) : until]
  }
}
