import type { Check, Policy, StoreOp } from '@sluice/core'

/** What an oracle says of a check: the fields of an outcome that every store must agree on. */
export interface Expected {
  allowed: boolean
  limit: number
  remaining: number
  resetMs: number
  retryAfterMs: number
}

interface Unit {
  /** When it was taken; a fixed window's start, or a sliding counter's, for those. */
  time: number
}

export interface Counted {
  units: Unit[]
  /** Start of the window that was charged last, also when all of its units were given back; logs have no use for it. */
  openedAt: number | undefined
}

/** The place of an oracle in a trace: what was taken under which receipt. */
export interface OracleReceipt {
  check: Check
  time: number
  /** The life of the key: one that was reset is another object. */
  life: Counted
}

/**
 * The obvious limiter: a list of units with their times, counted one by one. Waits are found by trying instants, not by formulas. Written from the
 * design alone, for the tests.
 */
export class Oracle {
  readonly #keys = new Map<string, Counted>()
  readonly #ends: number[] = []
  #life = 0
  #latest = Number.NEGATIVE_INFINITY

  /**
   * Whether the clock may step to `now` without reviving units that have expired: whether those are still stored then is left to a
   * store. It never gives a client more or less than its window, which the properties check.
   */
  mayStepTo(now: number): boolean {
    return !this.#ends.some((end) => end <= this.#latest && end > now)
  }

  apply(
    op: StoreOp,
    checks: readonly Check[],
    at: { now: number; receipts?: readonly (OracleReceipt | undefined)[] },
  ): {
    expected: Expected[]
    receipts: (OracleReceipt | undefined)[]
  } {
    const { now } = at
    this.#latest = Math.max(this.#latest, now)
    if (op === 'peek')
      return {
        expected: checks.map((check) => this.#expected(copyOf(this.#of(check)), check, now)),
        receipts: [],
      }
    for (const check of checks) {
      if (settle(this.#of(check), check, now)) this.#ends.push(...endsOf(check.policy, now))
    }
    if (op === 'consume') return this.#consume(checks, now)
    const receipts = checks.map((check, index) => {
      if (op === 'charge') return this.#take(check, now)
      if (op === 'reset') this.#keys.delete(nameOf(check))
      if (op === 'refund') this.#giveBack(check, at.receipts?.[index], now)
      return undefined
    })
    return {
      expected: checks.map((check) => this.#passed(check, now)),
      receipts,
    }
  }

  #consume(
    checks: readonly Check[],
    now: number,
  ): { expected: Expected[]; receipts: (OracleReceipt | undefined)[] } {
    const before = checks.map((check) => this.#expected(this.#of(check), check, now))
    if (before.every(({ allowed }) => allowed)) {
      const receipts = checks.map((check) => this.#take(check, now))
      return {
        expected: checks.map((check) => this.#passed(check, now)),
        receipts,
      }
    }
    const expected = checks.map((check, index) => {
      const known = before[index]
      if (known && !(check.policy.countDenied && check.cost > 0 && check.limit > 0)) return known
      this.#take(check, now)
      return this.#expected(this.#of(check), check, now)
    })
    return { expected, receipts: checks.map(() => undefined) }
  }

  #of(check: Check): Counted {
    const known = this.#keys.get(nameOf(check))
    if (known) return known
    this.#life += 1
    const counted: Counted = { units: [], openedAt: undefined }
    this.#keys.set(nameOf(check), counted)
    return counted
  }

  #take(check: Check, now: number): OracleReceipt | undefined {
    const { policy, cost, limit } = check
    if (cost === 0 || limit === 0) return undefined
    // Once all that a key held has expired, what comes is another life of it.
    if (isOver(this.#of(check), policy, now)) this.#keys.delete(nameOf(check))
    const counted = this.#of(check)
    if (policy.algorithm === 'sliding-counter') counted.openedAt = startOf(policy, now)
    counted.openedAt ??= startOf(policy, now)
    const time = timeOf(counted, policy, now)
    for (let i = 0; i < Math.min(cost, 100_000); i += 1) counted.units.push({ time })
    if (policy.algorithm === 'sliding-log') counted.units = live(counted, policy, now).slice(-limit)
    this.#ends.push(...endsOf(policy, now))
    return { check, time, life: counted }
  }

  #giveBack(check: Check, receipt: OracleReceipt | undefined, now: number): void {
    const counted = this.#of(check)
    if (!receipt || receipt.life !== counted) return
    const { policy, cost } = check
    if (
      policy.algorithm === 'fixed-window' &&
      !(isOpen(counted, policy, now) && counted.openedAt === receipt.time)
    )
      return
    if (policy.algorithm === 'sliding-counter' && startOf(policy, now) !== receipt.time) return
    if (policy.algorithm === 'sliding-log' && receipt.time <= now - policy.windowMs) return
    let left = cost
    counted.units = counted.units.filter(({ time }) => {
      if (time !== receipt.time || left === 0) return true
      left -= 1
      return false
    })
    // Nothing is left of the log: what comes after is another life.
    const isGone = policy.algorithm === 'sliding-log' && live(counted, policy, now).length === 0
    if (left < cost && isGone) this.#keys.delete(nameOf(check))
  }

  #passed(check: Check, now: number): Expected {
    return {
      ...this.#expected(this.#of(check), check, now),
      allowed: true,
      retryAfterMs: 0,
    }
  }

  #expected(counted: Counted, check: Check, now: number): Expected {
    settle(counted, check, now)
    const { policy, limit, cost } = check
    const used = usedAt(counted, policy, now)
    const never = limit === 0 || cost > limit
    const wait = never
      ? Number.POSITIVE_INFINITY
      : cost === 0
        ? 0
        : firstWait(counted, policy, { now, most: limit - cost })
    return {
      allowed: wait === 0,
      limit,
      remaining: Math.max(0, limit - used),
      resetMs: resetOf(counted, check, now),
      retryAfterMs: wait,
    }
  }
}

function nameOf({ policy, key }: Check): string {
  return JSON.stringify([policy.id, key])
}

function copyOf(counted: Counted): Counted {
  return {
    openedAt: counted.openedAt,
    units: counted.units.map((unit) => ({ ...unit })),
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

function isOver(counted: Counted, policy: Policy, now: number): boolean {
  if (policy.algorithm === 'sliding-log') return live(counted, policy, now).length === 0
  const windows = policy.algorithm === 'sliding-counter' ? 2 : 1
  return counted.openedAt !== undefined && now >= counted.openedAt + windows * policy.windowMs
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

/** The first wait after which at most `most` units count: found by halving, since units only ever leave. */
function firstWait(
  counted: Counted,
  policy: Policy,
  { now, most }: { now: number; most: number },
): number {
  let low = 0
  let high = 2 * policy.windowMs + policy.resolutionMs
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (usedAt(counted, policy, now + middle) <= most) high = middle
    else low = middle + 1
  }
  return low
}

function resetOf(counted: Counted, { policy, limit }: Check, now: number): number {
  const { windowMs } = policy
  if (limit === 0) return windowMs
  if (policy.algorithm === 'fixed-window') {
    return isOpen(counted, policy, now) ? (counted.openedAt ?? 0) + windowMs - now : windowMs
  }
  const used = usedAt(counted, policy, now)
  if (used === 0) return windowMs
  const next = firstWait(counted, policy, {
    now,
    most: Math.min(used, limit) - 1,
  })
  const share = BigInt(Math.max(0, limit - used)) * BigInt(windowMs)
  return Math.max(next, Number((share + BigInt(limit) - 1n) / BigInt(limit)))
}

/** The instants at which units taken now stop to count, by any reading of their time. */
function endsOf(policy: Policy, now: number): number[] {
  const { windowMs, resolutionMs } = policy
  const start = startOf(policy, now)
  if (policy.algorithm === 'sliding-counter') return [start + windowMs, start + 2 * windowMs]
  if (policy.algorithm === 'fixed-window') return [now + windowMs, start + windowMs]
  return [now + windowMs, Math.ceil(now / resolutionMs) * resolutionMs + windowMs]
}
