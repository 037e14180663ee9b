import type { Check } from '../check.ts'
import type { Algorithm } from './algorithm.ts'
import { effectiveWindowMs } from './effective-window.ts'

/**
 * Entry i says that `totals[i] − totals[i − 1]` units were taken at `times[i]`; times ascend strictly. Entries before `head`
 * are dead, and `base` is the running total in front of the first live one, which may lie inside that entry when its
 * oldest units were dropped.
 */
export interface SlidingLog {
  times: number[]
  totals: number[]
  head: number
  base: number
}

/**
 * Every unit with its time, exact over any rolling window (now − W, now]. Running totals answer any cost by a
 * binary search, and requests of one millisecond share an entry.
 */
export const slidingLog: Algorithm<SlidingLog> = {
  create: () => ({ times: [], totals: [], head: 0, base: 0 }),

  settle(state, check, now) {
    const latestMs = recordedAt(check, now)
    if (lastOf(state.times) <= latestMs) return state
    const from = firstAfter(state, latestMs - 1)
    return {
      ...state,
      times: [...state.times.slice(0, from), latestMs],
      totals: [...state.totals.slice(0, from), lastOf(state.totals)],
    }
  },

  used: (state, check, now) => unitsAfter(state, now - check.policy.windowMs),

  msUntil(state, check, { now, target }) {
    if (slidingLog.used(state, check, now) <= target) return 0
    const gone = lastOf(state.totals) - target
    let low = state.head
    let high = state.totals.length - 1
    while (low < high) {
      const middle = (low + high) >>> 1
      if (at(state.totals, middle) >= gone) high = middle
      else low = middle + 1
    }
    return at(state.times, low) + check.policy.windowMs - now
  },

  resetMs: (state, check, now) => effectiveWindowMs(slidingLog, state, { check, now }),

  take(state, check, now) {
    const { times, totals } = state
    const time = recordedAt(check, now)
    dropUntil(state, firstAfter(state, now - check.policy.windowMs))
    const units = lastOf(totals) + check.cost
    if (times.length > 0 && lastOf(times) === time) {
      totals[totals.length - 1] = units
    } else {
      times.push(time)
      totals.push(units)
    }
    keepNewest(state, check.limit)
    return time
  },

  giveBack(state, check, { now, at: time }) {
    if (time <= now - check.policy.windowMs) return
    const index = firstAfter(state, time - 1)
    if (index >= state.times.length || at(state.times, index) !== time) return
    const before = index === state.head ? state.base : at(state.totals, index - 1)
    const units = Math.min(check.cost, at(state.totals, index) - before)
    for (let i = index; i < state.totals.length; i += 1)
      state.totals[i] = at(state.totals, i) - units
    if (at(state.totals, index) === before) {
      state.times.splice(index, 1)
      state.totals.splice(index, 1)
      clearWhenEmpty(state)
    }
  },

  endsAt(state, check) {
    return state.times.length > 0 ? lastOf(state.times) + check.policy.windowMs : 0
  },
}

/** The time under which a unit taken at `now` is recorded: rounded up, so that it never leaves too early. */
function recordedAt(check: Check, now: number): number {
  const { resolutionMs } = check.policy
  const beyond = now % resolutionMs
  return beyond === 0 ? now : now - beyond + resolutionMs
}

function unitsAfter(state: SlidingLog, timeMs: number): number {
  const first = firstAfter(state, timeMs)
  if (first >= state.totals.length) return 0
  return lastOf(state.totals) - (first === state.head ? state.base : at(state.totals, first - 1))
}

/** Index of the first live entry whose time lies after `timeMs`; the length when there is none. */
function firstAfter(state: SlidingLog, timeMs: number): number {
  let low = state.head
  let high = state.times.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (at(state.times, middle) > timeMs) high = middle
    else low = middle + 1
  }
  return low
}

function dropUntil(state: SlidingLog, index: number): void {
  if (index > state.head) {
    state.base = at(state.totals, index - 1)
    state.head = index
  }
  clearWhenEmpty(state)
  if (state.head >= 16 && state.head * 2 >= state.times.length) {
    // Moving the live half over the dead one is paid for by as many entries that died.
    state.times.splice(0, state.head)
    state.totals.splice(0, state.head)
    state.head = 0
  }
}

/** A log without live entries is as new: what lies before `head` must not be taken for its end. */
function clearWhenEmpty(state: SlidingLog): void {
  if (state.head < state.times.length) return
  state.times.length = 0
  state.totals.length = 0
  state.head = 0
  state.base = 0
}

/** Units taken without asking may go beyond the limit: only the newest `limit` of them can ever matter. */
function keepNewest(state: SlidingLog, limit: number): void {
  const excess = lastOf(state.totals) - limit
  if (excess <= state.base) return
  let index = state.head
  while (at(state.totals, index) <= excess) index += 1
  state.head = index
  state.base = excess
}

function lastOf(values: readonly number[]): number {
  return values.length === 0 ? 0 : at(values, values.length - 1)
}

/** The value at an index that is known to exist. */
function at(values: readonly number[], index: number): number {
  return values[index] ?? 0
}
