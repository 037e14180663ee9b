import { type Duration, durationMs } from '../options/duration.ts'
import { invalid, orDefault } from '../options/options.ts'
import { type Algorithm, type CountingCheck, type KeyState, taken } from './algorithm.ts'
import { effectiveWindowMs, plainWindow } from './window.ts'

export interface SlidingLogOptions {
  /**
   * `sliding-log` only: recorded times are rounded up to multiples of this duration, which limits a
   * key to `window / resolution + 1` entries and never admits extra requests. @default 1 ms: exact
   */
  resolution?: Duration | undefined
}

export interface SlidingLogSettings {
  /** `sliding-log`: recorded times are rounded up to multiples of this value. */
  readonly resolutionMs: number
}

export type Check = CountingCheck<SlidingLogSettings>

/**
 * An entry has a time and a running total of units; times increase strictly. The units of entry i
 * are its total minus the total of entry i − 1. The last entry has separate fields, since most keys
 * have no other. `earlier` has all earlier entries, alternating times and totals. Entries before
 * number `head` are dead. `base` is the running total before the first live entry; it lies inside
 * that entry if the entry's oldest units were dropped.
 */
export interface SlidingLog extends KeyState {
  /** −1 when there is no entry. */
  lastMs: number
  lastTotal: number
  earlier: number[]
  head: number
  base: number
}

/** Shared by all logs without earlier entries; never written to. */
const none: number[] = []

/**
 * Stores every unit with its time: exact over any rolling window (now − W, now]. A binary search in
 * the running totals answers any cost, and requests in the same millisecond share an entry.
 */
export const slidingLog: Algorithm<SlidingLog, SlidingLogSettings, SlidingLogOptions> = {
  ...plainWindow,
  counts: 'units',
  keepsEachUnit: true,
  keyName: 'log',
  keyShape: ({ windowMs, resolutionMs }) =>
    `${windowMs}${resolutionMs > 1 ? `-r${resolutionMs}` : ''}`,
  describe: ({ windowMs, resolutionMs }) =>
    `sliding-log over ${windowMs} ms${resolutionMs > 1 ? ` at ${resolutionMs} ms` : ''}`,
  options: {
    fields: { resolution: { form: 'duration' } },
    read({ resolution }, windowMs, at) {
      const option = at('resolution')
      const resolutionMs = durationMs(orDefault(resolution, 1), option)
      if (resolutionMs <= windowMs) return { resolutionMs }
      throw invalid({ option }, resolution, `at most the window (${windowMs} ms)`)
    },
  },
  codec: { save, load },

  create: newLog,

  clamp(state, check, now) {
    const latestMs = recordedAt(check, now)
    if (state.lastMs <= latestMs) return state
    const from = firstAfter(state, latestMs - 1)
    return { ...state, lastMs: latestMs, earlier: state.earlier.slice(0, 2 * from) }
  },

  used(state, check, now) {
    const cutMs = now - check.policy.windowMs
    return state.lastTotal - totalBefore(state, firstAfter(state, cutMs))
  },

  msUntil(state, check, { now, target }) {
    let low = firstAfter(state, now - check.policy.windowMs)
    const gone = state.lastTotal - target
    if (gone <= totalBefore(state, low)) return 0
    let high = countOf(state) - 1
    while (low < high) {
      const middle = (low + high) >>> 1
      if (totalAt(state, middle) >= gone) high = middle
      else low = middle + 1
    }
    return timeAt(state, low) + check.policy.windowMs - now
  },

  take(state, check, now) {
    const time = recordedAt(check, now)
    dropUntil(state, firstAfter(state, now - check.policy.windowMs))
    const before = state.lastTotal - state.base
    // A smaller limit, as for a request of another tier, keeps units taken under a larger one.
    const most = Math.max(maxRecorded(check), before)
    const units = Math.min(check.cost, most)
    append(state, time, units)
    keepNewest(state, most)
    state.limit = check.limit
    return time
  },

  takeUsual(state, check, now) {
    const cutMs = now - check.policy.windowMs
    if (state.lastMs > now || (state.lastMs >= 0 && state.lastMs <= cutMs)) return undefined
    const first = firstAfter(state, cutMs)
    const used = state.lastTotal - totalBefore(state, first) + check.cost
    if (used > check.limit) return undefined
    dropUntil(state, first)
    const time = recordedAt(check, now)
    append(state, time, check.cost)
    state.limit = check.limit
    const remaining = check.limit - used
    const msToNextUnit = timeAt(state, state.head) - cutMs
    return taken(time, remaining, effectiveWindowMs(check, remaining, msToNextUnit))
  },

  giveBack(state, held, now) {
    const time = held.receipt.at
    if (time <= now - held.policy.windowMs) return false
    if (slidingLog.used(state, held, now) >= maxRecorded(held)) return false
    const index = firstAfter(state, time - 1)
    if (timeAt(state, index) !== time) return false
    const { earlier } = state
    const before = totalBefore(state, index)
    const units = Math.min(held.cost, totalAt(state, index) - before)
    for (let i = 2 * index + 1; i < earlier.length; i += 2) earlier[i] = at(earlier, i) - units
    state.lastTotal -= units
    if (totalAt(state, index) > before) return true
    // The entry is empty.
    if (2 * index < earlier.length) earlier.splice(2 * index, 2)
    else state.lastMs = earlier.splice(-2)[0] ?? -1
    clearWhenEmpty(state)
    return true
  },

  endsAt(state, check) {
    return state.lastMs < 0 ? 0 : state.lastMs + check.policy.windowMs
  },

  // As if all units had the oldest one's time: the twin reports the wait if more must expire.
  fromTwin(check, { amount, detail, explicitMs }, now) {
    const state = newLog(now + detail - check.policy.windowMs, amount, check.limit)
    return { state, at: recordedAt(check, now), waitMs: explicitMs }
  },

  luaSetting: ({ policy }) => (policy.resolutionMs === 1 ? undefined : policy.resolutionMs),
}

function newLog(lastMs = -1, lastTotal = 0, limit = 0): SlidingLog {
  return { lastMs, lastTotal, earlier: none, head: 0, base: 0, limit }
}

/** Returns the log without dead entries. */
function save({ limit, base, lastMs, lastTotal, earlier, head }: SlidingLog): readonly number[] {
  return [limit, base, lastMs, lastTotal, ...earlier.slice(2 * head)]
}

function load([limit = 0, base = 0, lastMs = 0, lastTotal, ...earlier]: readonly number[]):
  | SlidingLog
  | undefined {
  if (lastTotal === undefined || earlier.length % 2 > 0) return undefined
  return { ...newLog(), limit, base, lastMs, lastTotal, earlier }
}

/**
 * The most units that a log records: more than the limit, so that a refund after a charge beyond it
 * keeps the units of others. A full log has dropped older units, and gives nothing back until some
 * of its units have left the window.
 */
function maxRecorded({ limit }: Check): number {
  return 2 * limit + 1
}

/** The recorded time of a unit taken at `now`: rounded up, so that it never expires early. */
export function recordedAt(check: Check, now: number): number {
  const { resolutionMs } = check.policy
  if (resolutionMs === 1) return now
  const beyond = now % resolutionMs
  return beyond === 0 ? now : now - beyond + resolutionMs
}

/** Index of the first live entry after `timeMs`, or the number of entries if there is none. */
function firstAfter(state: SlidingLog, timeMs: number): number {
  let low = state.head
  let high = countOf(state)
  if (state.lastMs <= timeMs) return high
  // Usually the first one.
  if (timeAt(state, low) > timeMs) return low
  while (low < high) {
    const middle = (low + high) >>> 1
    if (timeAt(state, middle) > timeMs) high = middle
    else low = middle + 1
  }
  return low
}

function append(state: SlidingLog, time: number, units: number): void {
  if (state.lastMs >= 0 && state.lastMs < time) {
    if (state.earlier === none) state.earlier = [state.lastMs, state.lastTotal]
    else state.earlier.push(state.lastMs, state.lastTotal)
  }
  state.lastMs = time
  state.lastTotal += units
}

function dropUntil(state: SlidingLog, index: number): void {
  if (index > state.head) {
    state.base = totalAt(state, index - 1)
    state.head = index
  }
  clearWhenEmpty(state)
  // At most as many entries move as are dropped, so the cost per entry stays constant.
  const isHalfDead = state.head >= 16 && state.head * 2 >= countOf(state)
  // Totals stay below 2^53: a charge adds at most 2^48 units, and so many are live.
  if (!isHalfDead && state.base < 2 ** 52) return
  const { earlier, base } = state
  earlier.splice(0, 2 * state.head)
  for (let i = 1; i < earlier.length; i += 2) earlier[i] = at(earlier, i) - base
  state.lastTotal -= base
  state.head = 0
  state.base = 0
}

/** Resets a log without live entries: an entry before `head` must not be read as its end. */
function clearWhenEmpty(state: SlidingLog): void {
  if (state.head >= countOf(state)) Object.assign(state, newLog(-1, 0, state.limit))
}

/** Charges may exceed what a log records: the newest units are kept. */
function keepNewest(state: SlidingLog, most: number): void {
  const excess = state.lastTotal - most
  if (excess <= state.base) return
  let index = state.head
  while (totalAt(state, index) <= excess) index += 1
  state.head = index
  state.base = excess
}

function countOf({ lastMs, earlier }: SlidingLog): number {
  return lastMs < 0 ? 0 : earlier.length / 2 + 1
}

function timeAt({ earlier, lastMs }: SlidingLog, index: number): number {
  return 2 * index < earlier.length ? at(earlier, 2 * index) : lastMs
}

function totalAt({ earlier, lastTotal }: SlidingLog, index: number): number {
  return 2 * index < earlier.length ? at(earlier, 2 * index + 1) : lastTotal
}

function totalBefore(state: SlidingLog, index: number): number {
  return index === state.head ? state.base : totalAt(state, index - 1)
}

/** The value at an index known to exist. */
function at(values: readonly number[], index: number): number {
  return values[index] ?? 0
}
