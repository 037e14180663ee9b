import { type Duration, durationMs } from '../options/duration.ts'
import { invalid } from '../options/options.ts'
import {
  type Algorithm,
  type CountingCheck,
  type KeyState,
  type OptionPath,
  taken,
} from './algorithm.ts'
import { effectiveWindowMs, resetOf } from './effective-window.ts'
import { plainWindow } from './flat-codec.ts'

export interface SlidingLogOptions {
  /**
   * `sliding-log` only: recorded times are rounded up to multiples of this duration, which limits a
   * key to `window / resolution + 1` entries and never admits extra requests. @default 1 ms: exact
   */
  resolution?: Duration | undefined
}

export interface SlidingLogSettings {
  /** `sliding-log`: recorded times are rounded up to multiples of this. */
  readonly resolutionMs: number
}

type Check = CountingCheck<SlidingLogSettings>

/**
 * An entry has a time and a running total of units; times ascend strictly. The units of entry i are
 * its total less the total of entry i − 1. The last entry has fields of its own, since most keys
 * have no other. All earlier entries are in `earlier`: times and totals in turn. Entries before
 * number `head` are dead. `base` is the running total before the first live entry; it lies inside
 * that entry when the oldest units of the entry were dropped.
 */
export interface SlidingLog extends KeyState {
  /** −1 when there is no entry. */
  lastMs: number
  lastTotal: number
  earlier: number[]
  head: number
  base: number
}

/** Shared by all logs without earlier entries, and never written to. */
const none: number[] = []

/**
 * Every unit with its time, exact over any rolling window (now − W, now]. Running totals answer any
 * cost by a binary search, and requests of one millisecond share an entry.
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
    fields: {
      resolution: { form: 'duration' },
    },
    neutral: { resolutionMs: 1 },
    read: ({ resolution }, windowMs, at) => ({
      resolutionMs: resolutionOf(resolution, windowMs, at),
    }),
  },
  codec: { save, load },

  create: newLog,

  capacity: ({ limit }) => limit,

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

  resetMs: resetOf(() => slidingLog),

  take(state, check, now) {
    const time = recordedAt(check, now)
    dropUntil(state, firstAfter(state, now - check.policy.windowMs))
    const before = state.lastTotal - state.base
    // A smaller limit, as of a request of another tier, does not forget what was taken under a
    // larger one.
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

  giveBack(state, check, { now, at: time }) {
    if (time <= now - check.policy.windowMs) return false
    if (slidingLog.used(state, check, now) >= maxRecorded(check)) return false
    const index = firstAfter(state, time - 1)
    const last = countOf(state) - 1
    if (timeAt(state, index) !== time) return false
    const { earlier } = state
    const before = totalBefore(state, index)
    const units = Math.min(check.cost, totalAt(state, index) - before)
    for (let i = 2 * index + 1; i < earlier.length; i += 2) earlier[i] = at(earlier, i) - units
    state.lastTotal -= units
    if (totalAt(state, index) > before) return true
    // Nothing is left of the entry.
    if (index < last) earlier.splice(2 * index, 2)
    else if (last > 0) {
      state.lastMs = timeAt(state, last - 1)
      earlier.length -= 2
    } else state.lastMs = -1
    clearWhenEmpty(state)
    return true
  },

  endsAt(state, check) {
    return state.lastMs < 0 ? 0 : state.lastMs + check.policy.windowMs
  },

  // As if all units had the time of the oldest: the twin tells the wait for any more of them.
  fromTwin(check, { amount, detail, explicitMs }, now) {
    const state = newLog(now + detail - check.policy.windowMs, amount, check.limit)
    return { state, at: recordedAt(check, now), waitMs: explicitMs }
  },

  luaSetting: ({ policy }) => (policy.resolutionMs === 1 ? undefined : policy.resolutionMs),
}

function newLog(lastMs = -1, lastTotal = 0, limit = 0): SlidingLog {
  return { lastMs, lastTotal, earlier: none, head: 0, base: 0, limit }
}

function resolutionOf(value: unknown, windowMs: number, at: OptionPath): number {
  if (value === undefined) return 1
  const option = at('resolution')
  const resolutionMs = durationMs(value, option)
  if (resolutionMs <= windowMs) return resolutionMs
  throw invalid({ option }, value, `at most the window (${windowMs} ms)`)
}

/** Returns the log without its dead entries. */
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
 * leaves what others took. A log that is full has lost count of older units, and gives nothing back
 * until some of its own have left the window.
 */
function maxRecorded({ limit }: Check): number {
  return 2 * limit + 1
}

/**
 * The time under which a unit taken at `now` is recorded: rounded up, so that it never leaves too
 * early.
 */
function recordedAt(check: Check, now: number): number {
  const { resolutionMs } = check.policy
  if (resolutionMs === 1) return now
  const beyond = now % resolutionMs
  return beyond === 0 ? now : now - beyond + resolutionMs
}

/**
 * Index of the first live entry whose time lies after `timeMs`; the number of entries when there is
 * none.
 */
function firstAfter(state: SlidingLog, timeMs: number): number {
  let low = state.head
  let high = countOf(state)
  if (state.lastMs <= timeMs) return high
  // Usually it is the first one.
  if (timeAt(state, low) > timeMs) return low
  while (low < high) {
    const middle = (low + high) >>> 1
    if (timeAt(state, middle) > timeMs) high = middle
    else low = middle + 1
  }
  return low
}

function append(state: SlidingLog, time: number, units: number): void {
  if (state.lastTotal > Number.MAX_SAFE_INTEGER - units) rebase(state)
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
  if (state.head >= 16 && state.head * 2 >= countOf(state)) {
    // The live entries move over at least as many dead ones, so the cost of an entry stays
    // constant.
    state.earlier.splice(0, 2 * state.head)
    state.head = 0
  }
}

/** Resets a log without live entries: an entry before `head` must not be taken for its end. */
function clearWhenEmpty(state: SlidingLog): void {
  if (state.head < countOf(state)) return
  state.lastMs = -1
  state.lastTotal = 0
  state.earlier = none
  state.head = 0
  state.base = 0
}

/** Lets running totals begin at 0 again, before they leave the whole numbers that doubles hold. */
function rebase(state: SlidingLog): void {
  const live = state.earlier.slice(2 * state.head)
  for (let i = 1; i < live.length; i += 2) live[i] = at(live, i) - state.base
  state.earlier = live
  state.lastTotal -= state.base
  state.head = 0
  state.base = 0
}

/** Units taken without asking may go beyond what is recorded: the newest are kept. */
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

/** The value at an index that is known to exist. */
function at(values: readonly number[], index: number): number {
  return values[index] ?? 0
}
