import { type Check, maxUnits, type Policy } from '@sluice/core'
import type { AnyCheck } from '../../support/store-through.ts'
import { calendarWindow } from './calendar-window.ts'
import { ceilDivide, type Expected, firstWait, type GivenBack, type Life } from './life.ts'

/** What one request took. */
interface Units {
  /** When they were taken; a fixed window's start, or a sliding counter's, for those. */
  time: number
  count: bigint
}

/** A list of what requests took, with their times, added up each time, for logs and windows. */
export class UnitLife implements Life {
  #units: Units[] = []
  /** Start of the window that was charged last, also when all of its units were given back; logs have no use for it. */
  #openedAt: number | undefined

  copy(): Life {
    const copy = new UnitLife()
    copy.#units = this.#units.map((unit) => ({ ...unit }))
    copy.#openedAt = this.#openedAt
    return copy
  }

  settle({ policy }: Check, now: number): number[] {
    return this.#hasSettled(policy, now) ? this.#endsOf(policy, now) : []
  }

  isOver({ policy }: Check, now: number): boolean {
    if (policy.algorithm === 'sliding-log') return this.#live(policy, now).length === 0
    if (this.#openedAt === undefined) return false
    if (policy.algorithm === 'fixed-window') return !this.#isOpen(policy, now)
    return now >= this.#openedAt + 2 * policy.windowMs
  }

  take({ policy, cost, limit }: Check, now: number): { at: number; ends: number[] } {
    if (policy.algorithm === 'sliding-counter') this.#openedAt = this.#counterStart(policy, now)
    this.#openedAt ??= startOf(policy, now)
    const time = this.#timeOf(policy, now)
    const before = sum(this.#live(policy, now))
    this.#units.push({ time, count: BigInt(cost) })
    if (policy.algorithm === 'sliding-log') {
      const recorded = maxRecorded(limit)
      this.#units = newest(this.#live(policy, now), before > recorded ? before : recorded)
    } else {
      const others = this.#units.filter((units) => units.time !== time)
      this.#units = [...others, ...newest(this.#takenAt(time), BigInt(maxUnits(policy)))]
    }
    return { at: time, ends: this.#endsOf(policy, now) }
  }

  giveBack(check: AnyCheck, at: number, now: number): GivenBack {
    const { policy, cost } = check
    if (!this.#isCurrent(policy, at, now) || this.#hasLostUnits(check, at, now)) {
      return { given: false, isGone: false }
    }
    let left = BigInt(cost)
    for (const units of this.#takenAt(at)) {
      const given = left < units.count ? left : units.count
      units.count -= given
      left -= given
    }
    this.#units = this.#units.filter(({ count }) => count > 0n)
    const given = left < BigInt(cost)
    // Nothing is left of the log: what comes after is another life.
    const isLog = policy.algorithm === 'sliding-log'
    return { given, isGone: given && isLog && this.#live(policy, now).length === 0 }
  }

  used({ policy }: Check, now: number): bigint {
    const { algorithm, windowMs } = policy
    if (algorithm === 'sliding-log') return sum(this.#live(policy, now))
    if (algorithm === 'fixed-window') return this.#isOpen(policy, now) ? sum(this.#units) : 0n
    const start = this.#counterStart(policy, now)
    const previous = sum(this.#takenAt(start - windowMs))
    const left = BigInt(windowMs - Math.max(0, now - start))
    return sum(this.#takenAt(start)) + (previous * left) / BigInt(windowMs)
  }

  expected(check: Check, now: number): Expected {
    const { policy, limit, cost } = check
    this.#hasSettled(policy, now)
    let wait = cost === 0 ? 0 : this.#waitFor(check, now, limit - cost)
    if (limit === 0 || cost > limit) wait = Number.POSITIVE_INFINITY
    return {
      allowed: wait === 0,
      limit,
      remaining: Math.max(0, limit - Number(this.used(check, now))),
      resetMs: this.#resetOf(check, now),
      retryAfterMs: wait,
      delayMs: 0,
    }
  }

  #timeOf(policy: Policy, now: number): number {
    if (policy.algorithm === 'sliding-log') {
      return Math.ceil(now / policy.resolutionMs) * policy.resolutionMs
    }
    if (policy.algorithm === 'sliding-counter') return this.#counterStart(policy, now)
    return this.#openedAt ?? now
  }

  /** The window of a counter: its time passes once, also if the clock is set back. */
  #counterStart(policy: Policy, now: number): number {
    return startOf(policy, Math.max(now, this.#openedAt ?? now))
  }

  #isOpen(policy: Policy, now: number): boolean {
    return this.#openedAt !== undefined && now < endOf(policy, this.#openedAt)
  }

  /** A time that lies after now counts as now, and a window of the clock as the next one. Tells whether there was one. */
  #hasSettled(policy: Policy, now: number): boolean {
    if (policy.algorithm === 'sliding-log') {
      const latest = this.#timeOf(policy, now)
      const late = this.#units.filter(({ time }) => time > latest)
      for (const unit of late) unit.time = latest
      return late.length > 0
    }
    const latest = isAligned(policy) ? endOf(policy, startOf(policy, now)) : now
    const lateMs = (this.#openedAt ?? latest) - latest
    if (lateMs <= 0) return false
    for (const unit of this.#units) unit.time -= lateMs
    this.#openedAt = latest
    return true
  }

  #live({ windowMs }: Policy, now: number): Units[] {
    return this.#units.filter(({ time }) => time > now - windowMs)
  }

  #takenAt(at: number): Units[] {
    return this.#units.filter(({ time }) => time === at)
  }

  /** Whether what was taken at a time can count still. */
  #isCurrent(policy: Policy, at: number, now: number): boolean {
    if (policy.algorithm === 'sliding-log') return at > now - policy.windowMs
    if (policy.algorithm === 'sliding-counter') return this.#counterStart(policy, now) === at
    return this.#isOpen(policy, now) && this.#openedAt === at
  }

  /** Whether as much counts as is remembered: then older units may be missing, and nothing is given back. */
  #hasLostUnits({ policy, limit }: Check, at: number, now: number): boolean {
    return policy.algorithm === 'sliding-log'
      ? sum(this.#live(policy, now)) >= maxRecorded(limit)
      : sum(this.#takenAt(at)) >= BigInt(maxUnits(policy))
  }

  /** The first wait after which at most `most` units count. */
  #waitFor(check: Check, now: number, most: number): number {
    const { windowMs, resolutionMs } = check.policy
    return firstWait(4 * windowMs + resolutionMs, (ms) => this.used(check, now + ms) <= most)
  }

  #resetOf(check: Check, now: number): number {
    const { policy, limit } = check
    const { windowMs } = policy
    if (policy.algorithm === 'fixed-window') {
      const open = limit > 0 && this.#isOpen(policy, now) ? this.#openedAt : undefined
      return endOf(policy, open ?? now) - now
    }
    const used = Number(this.used(check, now))
    if (limit === 0 || used === 0) return windowMs
    const next = this.#waitFor(check, now, Math.min(used, limit) - 1)
    const share = BigInt(Math.max(0, limit - used)) * BigInt(windowMs)
    return Math.max(next, ceilDivide(share, BigInt(limit)))
  }

  /** The instants at which units taken now stop to count, by any reading of their time. */
  #endsOf(policy: Policy, now: number): number[] {
    const { algorithm, windowMs, resolutionMs } = policy
    if (algorithm === 'sliding-log') {
      return [now + windowMs, Math.ceil(now / resolutionMs) * resolutionMs + windowMs]
    }
    const start = this.#counterStart(policy, now)
    if (algorithm === 'sliding-counter') return [start + 2 * windowMs]
    return [endOf(policy, now), endOf(policy, start)]
  }
}

function isAligned({ algorithm, clockAligned, calendar }: Policy): boolean {
  return algorithm === 'sliding-counter' || clockAligned || calendar !== undefined
}

function startOf(policy: Policy, now: number): number {
  if (policy.calendar) return calendarWindow(policy.calendar, now).start
  return isAligned(policy) ? Math.floor(now / policy.windowMs) * policy.windowMs : now
}

/** The end of a window that begins, or has begun, at a time. */
function endOf({ calendar, windowMs }: Policy, start: number): number {
  return calendar ? calendarWindow(calendar, start).end : start + windowMs
}

function sum(units: readonly Units[]): bigint {
  return units.reduce((total, { count }) => total + count, 0n)
}

/** The last `most` units. */
function newest(units: readonly Units[], most: bigint): Units[] {
  let left = most
  const kept: Units[] = []
  for (const { time, count } of units.toReversed()) {
    const some = count < left ? count : left
    if (some > 0n) kept.unshift({ time, count: some })
    left -= some
  }
  return kept
}

/** A log remembers the units beyond its limit too, so that what a refund gives back is not missing to others. */
function maxRecorded(limit: number): bigint {
  return 2n * BigInt(limit) + 1n
}
