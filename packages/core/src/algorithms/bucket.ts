import {
  type Algorithm,
  type CountingCheck,
  type KeyState,
  type Target,
  taken,
} from './algorithm.ts'
import { effectiveWindowMs, flatWindow, remainingUnits } from './window.ts'

type Check = CountingCheck<object>

/**
 * The level in units · ms at the time `at`. It drains by the limit every millisecond. `endsAt` is
 * when the bucket is empty at the limit of the last charge. A different limit alone does not move
 * it, so the bucket ends when its key expires.
 */
export interface Bucket extends KeyState {
  level: number
  at: number
  endsAt: number
}

/**
 * A bucket that rises by `windowMs` for each unit and drains by `limit` every millisecond. It uses
 * integers only, so no fraction of a unit is lost. Equivalent to refilled tokens and to GCRA.
 * @param own with `capacityLevel`: the highest level, in units · ms
 */
export function bucket<Settings extends object, Options>(
  own: OwnTraits<Settings, Options>,
): Algorithm<Bucket, Settings, Options> {
  const { capacityLevel } = own
  return {
    ...flatWindow(newBucket),
    ...own,
    counts: 'units',

    capacity: (check) => Math.floor(capacityLevel(check) / check.policy.windowMs),

    clamp(state, { policy }, now) {
      const at = now + policy.windowMs
      return state.at <= at ? state : { ...state, at, endsAt: at + state.endsAt - state.at }
    },

    used(state, check, now) {
      const { windowMs } = check.policy
      const level = levelAt(state, check, now) - (capacityLevel(check) % windowMs)
      return level <= 0 ? 0 : Math.ceil(level / windowMs)
    },

    msUntil(state, check, { now, target }) {
      const { windowMs } = check.policy
      const waitMs = msUntilLevel(state, check, {
        now,
        target: target * windowMs + (capacityLevel(check) % windowMs),
      })
      return waitMs === 0 ? 0 : waitMs + timeOf(state, now) - now
    },

    take(state, check, now) {
      const before = levelAt(state, check, now)
      const level = Math.min(before + check.cost * check.policy.windowMs, capacityLevel(check))
      // A smaller capacity, as for a request of another tier, keeps units taken under a larger one.
      fill(state, check.limit, { now, level: Math.max(before, level) })
      return state.endsAt
    },

    overflows(state, check, now) {
      const raised = levelAt(state, check, now) + check.cost * check.policy.windowMs
      return raised > capacityLevel(check)
    },

    takeUsual(state, check, now) {
      const { windowMs } = check.policy
      if (state.at > now || (state.endsAt > 0 && state.endsAt <= now)) return undefined
      const level = levelAt(state, check, now) + check.cost * windowMs
      const full = capacityLevel(check)
      if (level > full) return undefined
      const delayMs = own.delayMs?.(state, check, now) ?? 0
      fill(state, check.limit, { now, level })
      // The operator `%` is several times slower.
      const whole = Math.floor(full / windowMs)
      const part = full - whole * windowMs
      const used = Math.ceil((level - part) / windowMs)
      const capacity = own.quota ? own.quota(check) : whole
      const target = (Math.min(used, capacity) - 1) * windowMs + part
      const msToNextUnit = msUntilLevel(state, check, { now, target })
      const remaining = remainingUnits(check.limit, capacity, used)
      const resetMs = effectiveWindowMs(check, remaining, msToNextUnit)
      const charge = taken(state.endsAt, remaining, resetMs)
      charge.delayMs = delayMs
      return charge
    },

    giveBack(state, held, now) {
      const { windowMs } = held.policy
      const level = levelAt(state, held, now)
      // Units drain first in, first out. These are gone when the bucket would have been empty.
      const leftMs = held.receipt.at - timeOf(state, now)
      const undrained = leftMs * held.limit - (held.refunded ?? 0) * windowMs
      const given = Math.min(held.cost * windowMs, level, undrained)
      if (given > 0) fill(state, held.limit, { now, level: level - given })
      return given > 0
    },

    endsAt: ({ endsAt }) => endsAt,

    fromTwin(check, { amount, detail, explicitMs, aheadMs }, now) {
      const at = now + detail
      const state = { level: amount, at: now + aheadMs, endsAt: at, limit: check.limit }
      if (!own.delayMs) return { state, at }
      // Held until all earlier units have drained.
      const before = Math.max(0, amount - check.cost * check.policy.windowMs)
      return { state, at, delayMs: explicitMs ?? Math.ceil(before / check.limit) }
    },

    luaSetting(check) {
      const level = capacityLevel(check)
      return level === check.limit * check.policy.windowMs ? undefined : level
    },
  }
}

/** The traits that differ between buckets. */
type OwnTraits<Settings extends object, Options> = Pick<
  Algorithm<Bucket, Settings, Options>,
  'keyName' | 'divide' | 'options' | 'delayMs' | 'quota'
> & { capacityLevel(check: CountingCheck<Settings>): number }

function newBucket(): Bucket {
  return { level: 0, at: 0, endsAt: 0, limit: 0 }
}

/** Returns one process's share of a number of units: at least 1, unless there are none. */
export function shareOf(units: number, instances: number): number {
  return units === 0 ? 0 : Math.max(1, Math.floor(units / instances))
}

/** The time of a bucket, which never goes back: otherwise it would drain twice in the same time. */
function timeOf({ at }: Bucket, now: number): number {
  return Math.max(at, now)
}

/** The level at `now`, in units · ms. */
function levelAt(state: Bucket, { limit }: Check, now: number): number {
  const { level, at, endsAt } = state
  return now >= endsAt ? 0 : Math.max(0, level - (timeOf(state, now) - at) * limit)
}

/**
 * Returns the ms until the bucket drains to at most `target`. It may end earlier, if its limit was
 * once higher.
 */
export function msUntilLevel(state: Bucket, check: Check, { now, target }: Target): number {
  const excess = levelAt(state, check, now) - target
  const endsInMs = state.endsAt - timeOf(state, now)
  return excess <= 0 ? 0 : Math.min(Math.ceil(excess / check.limit), endsInMs)
}

function fill(state: Bucket, limit: number, { now, level }: { now: number; level: number }): void {
  state.level = level
  state.at = level > 0 ? timeOf(state, now) : now
  state.endsAt = state.at + Math.ceil(level / limit)
  state.limit = limit
}
