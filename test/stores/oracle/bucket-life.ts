import type { Check } from '@sluice/core'
import type { AnyCheck } from '../../support/store-through.ts'
import { ceilDivide, type Expected, firstWait, type GivenBack, type Life } from './life.ts'

const longest = 2 ** 52

/** A bucket in exact integers, whose waits are found by trying instants. */
export class BucketLife implements Life {
  #level = 0n
  #at = 0
  #endsAt = 0

  copy(): Life {
    const copy = new BucketLife()
    copy.#level = this.#level
    copy.#at = this.#at
    copy.#endsAt = this.#endsAt
    return copy
  }

  settle({ policy }: Check, now: number): number[] {
    const latest = now + policy.windowMs
    if (this.#at <= latest) return []
    this.#endsAt -= this.#at - latest
    this.#at = latest
    return [this.#endsAt]
  }

  isOver(_check: Check, now: number): boolean {
    return now >= this.#endsAt
  }

  take(check: Check, now: number): { at: number; ends: number[] } {
    const before = this.#levelAt(check, now)
    const most = capacity(check) > before ? capacity(check) : before
    this.#fill(check, now, this.overflows(check, now) ? most : before + unitsOf(check))
    return { at: this.#endsAt, ends: [this.#endsAt] }
  }

  overflows(check: Check, now: number): boolean {
    return this.#levelAt(check, now) + unitsOf(check) > capacity(check)
  }

  giveBack(check: AnyCheck, at: number, now: number): GivenBack {
    const level = this.#levelAt(check, now)
    const refunded = BigInt(check.refunded ?? 0) * BigInt(check.policy.windowMs)
    const undrained = BigInt(Math.max(0, at - this.#time(now))) * BigInt(check.limit) - refunded
    const units = [level, unitsOf(check), undrained].reduce((a, b) => (a < b ? a : b))
    if (units > 0n) this.#fill(check, now, level - units)
    return { given: units > 0n, isGone: now >= this.#endsAt }
  }

  used(check: Check, now: number): bigint {
    return capacity(check) / BigInt(check.policy.windowMs) - this.#fitting(check, now)
  }

  expected(check: Check, now: number): Expected {
    this.settle(check, now)
    const { limit, cost, policy } = check
    const most = capacity(check) / BigInt(policy.windowMs)
    const never = limit === 0 || BigInt(cost) > most
    let waitMs = firstWait(longest, (ms) => this.#fitting(check, now + ms) >= BigInt(cost))
    if (cost === 0) waitMs = 0
    if (never) waitMs = Number.POSITIVE_INFINITY
    const remaining = Math.min(limit, this.#left(check, now))
    return {
      allowed: waitMs === 0,
      limit,
      remaining: limit === 0 ? 0 : remaining,
      resetMs: this.#resetMs(check, now, remaining),
      retryAfterMs: waitMs,
      delayMs:
        policy.algorithm === 'leaky-bucket' && waitMs === 0 && cost > 0
          ? firstWait(longest, (ms) => this.#levelAt(check, this.#time(now) + ms) === 0n)
          : 0,
    }
  }

  #resetMs(check: Check, now: number, remaining: number): number {
    const { limit, policy } = check
    const most = capacity(check) / BigInt(policy.windowMs)
    if (limit === 0 || this.#fitting(check, now) === most) return policy.windowMs
    const more = this.#left(check, now) + 1
    const next = firstWait(longest, (ms) => this.#left(check, now + ms) >= more)
    return Math.max(next, ceilDivide(BigInt(remaining) * BigInt(policy.windowMs), BigInt(limit)))
  }

  /** How many single units could be taken; of a queue, how many of them would leave within a window. */
  #left(check: Check, now: number): number {
    const { limit, policy } = check
    const fitting = Number(this.#fitting(check, now))
    const waiting = Number(capacity(check) / BigInt(policy.windowMs)) - fitting
    const leaving = policy.algorithm === 'leaky-bucket' ? limit - waiting : fitting
    return Math.max(0, Math.min(fitting, leaving))
  }

  /** How many single units could be taken. */
  #fitting(check: Check, now: number): bigint {
    const room = capacity(check) - this.#levelAt(check, now)
    return room < 0n ? -1n : room / BigInt(check.policy.windowMs)
  }

  /** A bucket drains once in a time, also if the clock is set back. */
  #time(now: number): number {
    return Math.max(now, this.#at)
  }

  #levelAt({ limit }: Check, now: number): bigint {
    if (now >= this.#endsAt) return 0n
    const level = this.#level - BigInt(this.#time(now) - this.#at) * BigInt(limit)
    return level > 0n ? level : 0n
  }

  #fill({ limit }: Check, now: number, level: bigint): void {
    this.#level = level
    this.#at = level > 0n ? this.#time(now) : now
    this.#endsAt = this.#at + ceilDivide(level, BigInt(limit))
  }
}

function unitsOf({ policy, cost }: Check): bigint {
  return BigInt(cost) * BigInt(policy.windowMs)
}

function capacity({ policy, limit }: Check): bigint {
  const { windowMs, burst, queue, maxDelayMs } = policy
  if (policy.algorithm === 'token-bucket') return BigInt(burst ?? limit) * BigInt(windowMs)
  const byTime = BigInt(maxDelayMs) * BigInt(limit)
  const byNumber = Number.isFinite(queue) ? BigInt(queue) * BigInt(windowMs) : byTime
  const waiting = byTime < byNumber ? byTime : byNumber
  // Levels are whole numbers that doubles hold.
  const most = BigInt(Number.MAX_SAFE_INTEGER - windowMs)
  return (waiting < most ? waiting : most) + BigInt(windowMs)
}
