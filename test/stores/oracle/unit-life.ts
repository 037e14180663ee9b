import { type Check, maxUnits, type Policy } from '@sluice/core'
import { calendarWindow } from './calendar-window.ts'
import { ceilDivide, type Expected, firstWait, type GivenBack, type Life } from './life.ts'

/** What one request took. */
interface Units {
  /** When they were taken; a fixed window's start, or a sliding counter's, for those. */
  time: number
  count: bigint
}

interface Counted {
  units: Units[]
  /** Start of the window that was charged last, also when all of its units were given back; logs have no use for it. */
  openedAt: number | undefined
}

/** A list of what requests took, with their times, added up each time, for logs and windows. */
export class UnitLife implements Life {
  readonly #counted: Counted

  constructor(counted: Counted = { units: [], openedAt: undefined }) {
    this.#counted = counted
  }

  copy(): Life {
    const { units, openedAt } = this.#counted
    return new UnitLife({ openedAt, units: units.map((unit) => ({ ...unit })) })
  }

  settle(check: Check, now: number): number[] {
    return settle(this.#counted, check, now) ? endsOf(this.#counted, check.policy, now) : []
  }

  isOver({ policy }: Check, now: number): boolean {
    const counted = this.#counted
    if (policy.algorithm === 'sliding-log') return live(counted, policy, now).length === 0
    if (policy.algorithm === 'fixed-window')
      return counted.openedAt !== undefined && !isOpen(counted, policy, now)
    return counted.openedAt !== undefined && now >= counted.openedAt + 2 * policy.windowMs
  }

  take({ policy, cost, limit }: Check, now: number): { at: number; ends: number[] } {
    const counted = this.#counted
    if (policy.algorithm === 'sliding-counter')
      counted.openedAt = counterStart(counted, policy, now)
    counted.openedAt ??= startOf(policy, now)
    const time = timeOf(counted, policy, now)
    const before = sum(live(counted, policy, now))
    counted.units.push({ time, count: BigInt(cost) })
    if (policy.algorithm === 'sliding-log') {
      const recorded = maxRecorded(limit)
      const most = before > recorded ? before : recorded
      counted.units = newest(live(counted, policy, now), most)
    } else {
      const most = BigInt(maxUnits(policy))
      const others = counted.units.filter((units) => units.time !== time)
      const own = counted.units.filter((units) => units.time === time)
      counted.units = [...others, ...newest(own, most)]
    }
    return { at: time, ends: endsOf(counted, policy, now) }
  }

  giveBack({ policy, cost, limit }: Check, at: number, now: number): GivenBack {
    const counted = this.#counted
    const isLog = policy.algorithm === 'sliding-log'
    const own = counted.units.filter(({ time }) => time === at)
    if (
      !isCurrent(counted, policy, { at, now }) ||
      hasLostUnits(counted, { policy, limit, own, now })
    ) {
      return { given: false, isGone: false }
    }
    let left = BigInt(cost)
    for (const units of own) {
      const given = left < units.count ? left : units.count
      units.count -= given
      left -= given
    }
    counted.units = counted.units.filter(({ count }) => count > 0n)
    const given = left < BigInt(cost)
    // Nothing is left of the log: what comes after is another life.
    return { given, isGone: given && isLog && live(counted, policy, now).length === 0 }
  }

  used({ policy }: Check, now: number): bigint {
    return usedAt(this.#counted, policy, now)
  }

  renew(): { held: boolean; ends: number[] } {
    throw new Error('units have no leases')
  }

  expected(check: Check, now: number): Expected {
    const counted = this.#counted
    settle(counted, check, now)
    const { policy, limit, cost } = check
    const used = Number(usedAt(counted, policy, now))
    const never = limit === 0 || cost > limit
    const wait = never
      ? Number.POSITIVE_INFINITY
      : cost === 0
        ? 0
        : waitUntil(counted, policy, { now, most: BigInt(limit - cost) })
    return {
      allowed: wait === 0,
      limit,
      remaining: Math.max(0, limit - used),
      resetMs: resetOf(counted, check, now),
      retryAfterMs: wait,
      delayMs: 0,
    }
  }
}

function startOf(policy: Policy, now: number): number {
  if (policy.calendar) return calendarWindow(policy.calendar, now).start
  const aligned = policy.algorithm === 'sliding-counter' || policy.clockAligned
  return aligned ? Math.floor(now / policy.windowMs) * policy.windowMs : now
}

function timeOf(counted: Counted, policy: Policy, now: number): number {
  if (policy.algorithm === 'sliding-log')
    return Math.ceil(now / policy.resolutionMs) * policy.resolutionMs
  if (policy.algorithm === 'sliding-counter') return counterStart(counted, policy, now)
  return counted.openedAt ?? now
}

/** The window of a counter: its time passes once, also if the clock is set back. */
function counterStart({ openedAt }: Counted, policy: Policy, now: number): number {
  return startOf(policy, Math.max(now, openedAt ?? now))
}

function isOpen({ openedAt }: Counted, policy: Policy, now: number): boolean {
  return openedAt !== undefined && now < endOf(policy, openedAt)
}

/** The end of a window that begins, or has begun, at a time. */
function endOf({ calendar, windowMs }: Policy, start: number): number {
  return calendar ? calendarWindow(calendar, start).end : start + windowMs
}

/** A time that lies after now counts as now, and a window of the clock as the next one. Tells whether there was one. */
function settle(counted: Counted, { policy }: Check, now: number): boolean {
  if (policy.algorithm === 'sliding-log') {
    const latest = timeOf(counted, policy, now)
    const late = counted.units.filter(({ time }) => time > latest)
    for (const unit of late) unit.time = latest
    return late.length > 0
  }
  const isAligned = policy.clockAligned || policy.calendar || policy.algorithm === 'sliding-counter'
  const latest = isAligned ? endOf(policy, startOf(policy, now)) : now
  const { openedAt = latest } = counted
  if (openedAt <= latest) return false
  for (const unit of counted.units) unit.time -= openedAt - latest
  counted.openedAt = latest
  return true
}

function live({ units }: Counted, { windowMs }: Policy, now: number): Units[] {
  return units.filter(({ time }) => time > now - windowMs)
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

/** Whether what was taken at a time can count still. */
function isCurrent(
  counted: Counted,
  policy: Policy,
  { at, now }: { at: number; now: number },
): boolean {
  if (policy.algorithm === 'sliding-log') return at > now - policy.windowMs
  if (policy.algorithm === 'sliding-counter') return counterStart(counted, policy, now) === at
  return isOpen(counted, policy, now) && counted.openedAt === at
}

/** Whether as much counts as is remembered: then older units may be missing, and nothing is given back. */
function hasLostUnits(
  counted: Counted,
  { policy, limit, own, now }: { policy: Policy; limit: number; own: Units[]; now: number },
): boolean {
  return policy.algorithm === 'sliding-log'
    ? sum(live(counted, policy, now)) >= maxRecorded(limit)
    : sum(own) >= BigInt(maxUnits(policy))
}

function usedAt(counted: Counted, policy: Policy, now: number): bigint {
  if (policy.algorithm === 'sliding-log') return sum(live(counted, policy, now))
  if (policy.algorithm === 'fixed-window')
    return isOpen(counted, policy, now) ? sum(counted.units) : 0n
  const start = counterStart(counted, policy, now)
  const current = sum(counted.units.filter(({ time }) => time === start))
  const previous = sum(counted.units.filter(({ time }) => time === start - policy.windowMs))
  const left = policy.windowMs - Math.max(0, now - start)
  return current + (previous * BigInt(left)) / BigInt(policy.windowMs)
}

/** The first wait after which at most `most` units count. */
function waitUntil(
  counted: Counted,
  policy: Policy,
  { now, most }: { now: number; most: bigint },
): number {
  const longest = 4 * policy.windowMs + policy.resolutionMs
  return firstWait(longest, (ms) => usedAt(counted, policy, now + ms) <= most)
}

function resetOf(counted: Counted, { policy, limit }: Check, now: number): number {
  const { windowMs } = policy
  if (policy.algorithm === 'fixed-window') {
    const open = limit > 0 && isOpen(counted, policy, now) ? counted.openedAt : undefined
    return endOf(policy, open ?? now) - now
  }
  if (limit === 0) return windowMs
  const used = Number(usedAt(counted, policy, now))
  if (used === 0) return windowMs
  const next = waitUntil(counted, policy, { now, most: BigInt(Math.min(used, limit) - 1) })
  const share = BigInt(Math.max(0, limit - used)) * BigInt(windowMs)
  return Math.max(next, ceilDivide(share, BigInt(limit)))
}

/** The instants at which units taken now stop to count, by any reading of their time. */
function endsOf(counted: Counted, policy: Policy, now: number): number[] {
  const { windowMs, resolutionMs } = policy
  const isLog = policy.algorithm === 'sliding-log'
  const start = startOf(policy, isLog ? now : Math.max(now, counted.openedAt ?? now))
  if (policy.algorithm === 'sliding-counter') return [start + 2 * windowMs]
  if (policy.algorithm === 'fixed-window') return [endOf(policy, now), endOf(policy, start)]
  return [now + windowMs, Math.ceil(now / resolutionMs) * resolutionMs + windowMs]
}
