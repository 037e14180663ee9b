import { type Algorithm, type CountingCheck, type KeyState, taken } from './algorithm.ts'
import { maxUnits, unitsLeft } from './max-units.ts'
import { effectiveWindowMs, flatWindow, noOptions } from './window.ts'

type Check = CountingCheck<object>

/**
 * Two adjacent windows: `current` starts at `startMs`, a multiple of the window; −1 when nothing
 * was taken.
 */
export interface SlidingCounter extends KeyState {
  startMs: number
  current: number
  previous: number
}

/**
 * The previous window counts in proportion to its overlap with the rolling window: `current +
 * ⌊previous · (W − elapsed) / W⌋`, multiplied before dividing, so that rounding loses no unit.
 */
export const slidingCounter: Algorithm<SlidingCounter> = {
  ...flatWindow(newCounter),
  counts: 'units',
  keyName: 'counter',
  lifeMs: ({ windowMs }) => 2 * windowMs,
  options: noOptions,

  clamp(state, check, now) {
    const startMs = windowStart(check, now) + check.policy.windowMs
    return state.startMs <= startMs ? state : { ...state, startMs }
  },

  used(state, check, now) {
    const { windowMs } = check.policy
    const time = timeOf(state, now)
    const startMs = windowStart(check, time)
    const left = windowMs - (time - startMs)
    return (
      currentAt(state, startMs) +
      Math.floor((previousAt(state, startMs, windowMs) * left) / windowMs)
    )
  },

  msUntil(state, check, { now, target }) {
    const { windowMs } = check.policy
    const startMs = windowStart(check, timeOf(state, now))
    const elapsedMs = now - startMs
    if (slidingCounter.used(state, check, now) <= target) return 0
    const current = currentAt(state, startMs)
    if (current <= target) {
      return (
        elapsedUntil(windowMs, previousAt(state, startMs, windowMs), target - current) - elapsedMs
      )
    }
    return windowMs - elapsedMs + elapsedUntil(windowMs, current, target)
  },

  take(state, check, now) {
    const { windowMs } = check.policy
    const startMs = windowStart(check, timeOf(state, now))
    const previous = previousAt(state, startMs, windowMs)
    state.current = Math.min(currentAt(state, startMs) + check.cost, maxUnits({ windowMs }))
    state.previous = previous
    state.startMs = startMs
    state.limit = check.limit
    return startMs
  },

  takeUsual(state, check, now) {
    const { cost, limit, policy } = check
    const { windowMs } = policy
    if (state.startMs > now) return undefined
    if (state.startMs >= 0 && state.startMs + 2 * windowMs <= now) return undefined
    const startMs = windowStart(check, now)
    const leftMs = startMs + windowMs - now
    const previous = previousAt(state, startMs, windowMs)
    const covered = Math.floor((previous * leftMs) / windowMs)
    const current = currentAt(state, startMs) + cost
    const remaining = limit - current - covered
    if (remaining < 0) return undefined
    state.startMs = startMs
    state.current = current
    state.previous = previous
    state.limit = limit
    const msToNextUnit =
      covered > 0
        ? elapsedUntil(windowMs, previous, covered - 1) + leftMs - windowMs
        : elapsedUntil(windowMs, current, current - 1) + leftMs
    return taken(startMs, remaining, effectiveWindowMs(check, remaining, msToNextUnit))
  },

  giveBack(state, held, now) {
    const { at } = held.receipt
    if (state.startMs !== at || windowStart(held, timeOf(state, now)) !== at) return false
    const before = state.current
    state.current = unitsLeft(held, before)
    return state.current < before
  },

  endsAt: (state, check) => state.startMs + 2 * check.policy.windowMs,

  fromTwin(check, { amount, detail, aheadMs }, now) {
    const startMs = windowStart(check, now + aheadMs)
    const state = { startMs, current: amount, previous: detail, limit: check.limit }
    return { state, at: startMs }
  },
}

function newCounter(): SlidingCounter {
  return { startMs: -1, current: 0, previous: 0, limit: 0 }
}

/** The time of a key, which never goes back: otherwise its previous window would fade twice. */
function timeOf({ startMs }: SlidingCounter, now: number): number {
  return Math.max(startMs, now)
}

function windowStart(check: Check, now: number): number {
  const { windowMs } = check.policy
  // Exact below 2^53. The operator `%` is several times slower.
  return Math.floor(now / windowMs) * windowMs
}

function currentAt(state: SlidingCounter, startMs: number): number {
  return state.startMs === startMs ? state.current : 0
}

function previousAt(state: SlidingCounter, startMs: number, windowMs: number): number {
  if (state.startMs === startMs) return state.previous
  return state.startMs >= 0 && state.startMs + windowMs === startMs ? state.current : 0
}

/**
 * Returns the ms into a window after which at most `target` of the previous window's `units` still
 * count, if `units` exceeds `target`: the least e with `⌊units · (W − e) / W⌋ ≤ target`, that is
 * `units · (W − e) < (target + 1) · W`.
 */
function elapsedUntil(windowMs: number, units: number, target: number): number {
  return windowMs - Math.ceil(((target + 1) * windowMs) / units) + 1
}
