import type { Check } from '../check.ts'
import type { Algorithm, Counted } from './algorithm.ts'
import { resetMs } from './effective-window.ts'

/**
 * Times and running totals in turn: entry i says that `entries[2i + 1] − entries[2i − 1]` units were taken at `entries[2i]`;
 * times ascend strictly. Entries before number `head` are dead, and `base` is the running total in front of the first live one, which may
 * lie inside that entry when its oldest units were dropped.
 */
export interface SlidingLog extends Counted {
  entries: number[]
  head: number
  base: number
}

/**
 * Every unit with its time, exact over any rolling window (now − W, now]. Running totals answer any cost by a
 * binary search, and requests of one millisecond share an entry.
 */
export const slidingLog: Algorithm<SlidingLog> = {
  create: () => ({ entries: [], head: 0, base: 0, limit: 0 }),

  capacity: ({ limit }) => limit,

  settle(state, check, now) {
    const latestMs = recordedAt(check, now)
    if (lastTime(state) <= latestMs) return state
    const from = firstAfter(state, latestMs - 1)
    return {
      ...state,
      entries: [...state.entries.slice(0, 2 * from), latestMs, lastTotal(state)],
    }
  },

  used(state, check, now) {
    const first = firstAfter(state, now - check.policy.windowMs)
    return first >= countOf(state) ? 0 : lastTotal(state) - totalBefore(state, first)
  },

  msUntil(state, check, { now, target }) {
    if (slidingLog.used(state, check, now) <= target) return 0
    const gone = lastTotal(state) - target
    let low = state.head
    let high = countOf(state) - 1
    if (totalAt(state, low) >= gone) high = low
    while (low < high) {
      const middle = (low + high) >>> 1
      if (totalAt(state, middle) >= gone) high = middle
      else low = middle + 1
    }
    return timeAt(state, low) + check.policy.windowMs - now
  },

  resetMs: (state, check, now) => resetMs(slidingLog, state, { check, now }),

  take(state, check, now) {
    const time = recordedAt(check, now)
    dropUntil(state, firstAfter(state, now - check.policy.windowMs))
    const { entries } = state
    const units = lastTotal(state) + check.cost
    // A literal takes no more room than it needs; what is pushed to an empty array takes 17 places.
    if (entries.length === 0) state.entries = [time, units]
    else if (lastTime(state) === time) entries[entries.length - 1] = units
    else entries.push(time, units)
    keepNewest(state, check.limit)
    state.limit = check.limit
    return time
  },

  giveBack(state, check, { now, at: time }) {
    if (time <= now - check.policy.windowMs) return
    const index = firstAfter(state, time - 1)
    if (index >= countOf(state) || timeAt(state, index) !== time) return
    const { entries } = state
    const before = totalBefore(state, index)
    const units = Math.min(check.cost, totalAt(state, index) - before)
    for (let i = 2 * index + 1; i < entries.length; i += 2) entries[i] = at(entries, i) - units
    if (totalAt(state, index) === before) {
      entries.splice(2 * index, 2)
      clearWhenEmpty(state)
    }
  },

  endsAt(state, check) {
    return state.entries.length > 0 ? lastTime(state) + check.policy.windowMs : 0
  },
}

/** The time under which a unit taken at `now` is recorded: rounded up, so that it never leaves too early. */
export function recordedAt(check: Check, now: number): number {
  const { resolutionMs } = check.policy
  if (resolutionMs === 1) return now
  const beyond = now % resolutionMs
  return beyond === 0 ? now : now - beyond + resolutionMs
}

/** Index of the first live entry whose time lies after `timeMs`; the number of entries when there is none. */
function firstAfter(state: SlidingLog, timeMs: number): number {
  let low = state.head
  let high = countOf(state)
  // Mostly it is the first one, or none: searched from both ends before it is halved.
  if (low < high && timeAt(state, low) > timeMs) return low
  if (low < high && timeAt(state, high - 1) <= timeMs) return high
  while (low < high) {
    const middle = (low + high) >>> 1
    if (timeAt(state, middle) > timeMs) high = middle
    else low = middle + 1
  }
  return low
}

function dropUntil(state: SlidingLog, index: number): void {
  if (index > state.head) {
    state.base = totalAt(state, index - 1)
    state.head = index
  }
  clearWhenEmpty(state)
  if (state.head >= 16 && state.head * 2 >= countOf(state)) {
    // Moving the live half over the dead one is paid for by as many entries that died.
    state.entries.splice(0, 2 * state.head)
    state.head = 0
  }
}

/** A log without live entries is as new: what lies before `head` must not be taken for its end. */
function clearWhenEmpty(state: SlidingLog): void {
  if (state.head < countOf(state)) return
  if (state.entries.length > 0) state.entries = []
  state.head = 0
  state.base = 0
}

/** Units taken without asking may go beyond the limit: only the newest `limit` of them can ever matter. */
function keepNewest(state: SlidingLog, limit: number): void {
  const excess = lastTotal(state) - limit
  if (excess <= state.base) return
  let index = state.head
  while (totalAt(state, index) <= excess) index += 1
  state.head = index
  state.base = excess
}

function countOf({ entries }: SlidingLog): number {
  return entries.length / 2
}

function timeAt({ entries }: SlidingLog, index: number): number {
  return at(entries, 2 * index)
}

function totalAt({ entries }: SlidingLog, index: number): number {
  return at(entries, 2 * index + 1)
}

function totalBefore(state: SlidingLog, index: number): number {
  return index === state.head ? state.base : totalAt(state, index - 1)
}

function lastTime({ entries }: SlidingLog): number {
  return entries.length === 0 ? 0 : at(entries, entries.length - 2)
}

function lastTotal({ entries }: SlidingLog): number {
  return entries.length === 0 ? 0 : at(entries, entries.length - 1)
}

/** The value at an index that is known to exist. */
function at(values: readonly number[], index: number): number {
  return values[index] ?? 0
}
