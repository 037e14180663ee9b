import type { Check, Policy } from '@sluice/core'
import { ceilDivide, type Expected, firstWait, type Life } from './life.ts'

interface Unit {
  /** When it was taken; a fixed window's start, or a sliding counter's, for those. */
  time: number
}

interface Counted {
  units: Unit[]
  /** Start of the window that was charged last, also when all of its units were given back; logs have no use for it. */
  openedAt: number | undefined
}

/** A list of units with their times, counted one by one, for logs and windows. */
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
    return settle(this.#counted, check, now) ? endsOf(check.policy, now) : []
  }

  isOver({ policy }: Check, now: number): boolean {
    const counted = this.#counted
    if (policy.algorithm === 'sliding-log') return live(counted, policy, now).length === 0
    const windows = policy.algorithm === 'sliding-counter' ? 2 : 1
    return counted.openedAt !== undefined && now >= counted.openedAt + windows * policy.windowMs
  }

  take({ policy, cost, limit }: Check, now: number): { at: number; ends: number[] } {
    const counted = this.#counted
    if (policy.algorithm === 'sliding-counter') counted.openedAt = startOf(policy, now)
    counted.openedAt ??= startOf(policy, now)
    const time = timeOf(counted, policy, now)
    const before = live(counted, policy, now).length
    for (let i = 0; i < Math.min(cost, 100_000); i += 1) counted.units.push({ time })
    if (policy.algorithm === 'sliding-log') {
      counted.units = live(counted, policy, now).slice(-Math.max(limit, before))
    }
    return { at: time, ends: endsOf(policy, now) }
  }

  giveBack({ policy, cost }: Check, at: number, now: number): boolean {
    const counted = this.#counted
    if (
      policy.algorithm === 'fixed-window' &&
      !(isOpen(counted, policy, now) && counted.openedAt === at)
    )
      return false
    if (policy.algorithm === 'sliding-counter' && startOf(policy, now) !== at) return false
    if (policy.algorithm === 'sliding-log' && at <= now - policy.windowMs) return false
    let left = cost
    counted.units = counted.units.filter(({ time }) => {
      if (time !== at || left === 0) return true
      left -= 1
      return false
    })
    // Nothing is left of the log: what comes after is another life.
    const isGone = policy.algorithm === 'sliding-log' && live(counted, policy, now).length === 0
    return left < cost && isGone
  }

  renew(): { held: boolean; ends: number[] } {
    throw new Error('units have no leases')
  }

  expected(check: Check, now: number): Expected {
    const counted = this.#counted
    settle(counted, check, now)
    const { policy, limit, cost } = check
    const used = usedAt(counted, policy, now)
    const never = limit === 0 || cost > limit
    const wait = never
      ? Number.POSITIVE_INFINITY
      : cost === 0
        ? 0
        : waitUntil(counted, policy, { now, most: limit - cost })
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
  const aligned = policy.algorithm === 'sliding-counter' || policy.clockAligned
  return aligned ? Math.floor(now / policy.windowMs) * policy.windowMs : now
}

function timeOf(counted: Counted, policy: Policy, now: number): number {
  if (policy.algorithm === 'sliding-log')
    return Math.ceil(now / policy.resolutionMs) * policy.resolutionMs
  if (policy.algorithm === 'sliding-counter') return startOf(policy, now)
  return counted.openedAt ?? now
}

function isOpen({ openedAt }: Counted, { windowMs }: Policy, now: number): boolean {
  return openedAt !== undefined && now < openedAt + windowMs
}

/** A time that lies after now counts as now. Tells whether there was one. */
function settle(counted: Counted, { policy }: Check, now: number): boolean {
  const isLog = policy.algorithm === 'sliding-log'
  const latest = isLog ? timeOf(counted, policy, now) : startOf(policy, now)
  const tooLate = policy.algorithm === 'fixed-window' ? now : latest
  const late = counted.units.filter(({ time }) => time > tooLate)
  for (const unit of late) unit.time = latest
  const isOpenLate = (counted.openedAt ?? tooLate) > tooLate
  if (isOpenLate) counted.openedAt = latest
  return late.length > 0 || isOpenLate
}

function live({ units }: Counted, { windowMs }: Policy, now: number): Unit[] {
  return units.filter(({ time }) => time > now - windowMs)
}

function usedAt(counted: Counted, policy: Policy, now: number): number {
  if (policy.algorithm === 'sliding-log') return live(counted, policy, now).length
  if (policy.algorithm === 'fixed-window')
    return isOpen(counted, policy, now) ? counted.units.length : 0
  const start = startOf(policy, now)
  const current = counted.units.filter(({ time }) => time === start).length
  const previous = counted.units.filter(({ time }) => time === start - policy.windowMs).length
  return (
    current +
    Number((BigInt(previous) * BigInt(policy.windowMs - (now - start))) / BigInt(policy.windowMs))
  )
}

/** The first wait after which at most `most` units count. */
function waitUntil(
  counted: Counted,
  policy: Policy,
  { now, most }: { now: number; most: number },
): number {
  const longest = 2 * policy.windowMs + policy.resolutionMs
  return firstWait(longest, (ms) => usedAt(counted, policy, now + ms) <= most)
}

function resetOf(counted: Counted, { policy, limit }: Check, now: number): number {
  const { windowMs } = policy
  if (limit === 0) return windowMs
  if (policy.algorithm === 'fixed-window') {
    return isOpen(counted, policy, now) ? (counted.openedAt ?? 0) + windowMs - now : windowMs
  }
  const used = usedAt(counted, policy, now)
  if (used === 0) return windowMs
  const next = waitUntil(counted, policy, {
    now,
    most: Math.min(used, limit) - 1,
  })
  const share = BigInt(Math.max(0, limit - used)) * BigInt(windowMs)
  return Math.max(next, ceilDivide(share, BigInt(limit)))
}

/** The instants at which units taken now stop to count, by any reading of their time. */
function endsOf(policy: Policy, now: number): number[] {
  const { windowMs, resolutionMs } = policy
  const start = startOf(policy, now)
  if (policy.algorithm === 'sliding-counter') return [start + windowMs, start + 2 * windowMs]
  if (policy.algorithm === 'fixed-window') return [now + windowMs, start + windowMs]
  return [now + windowMs, Math.ceil(now / resolutionMs) * resolutionMs + windowMs]
}
