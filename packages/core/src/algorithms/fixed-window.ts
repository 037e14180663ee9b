import { invalid, oneOf } from '../options/options.ts'
import { type Algorithm, type CountingCheck, type KeyState, taken } from './algorithm.ts'
import { type Calendar, calendarMs, calendarOf } from './calendar.ts'
import { maxUnits, unitsLeft } from './max-units.ts'
import { flatWindow } from './window.ts'

export interface FixedWindowOptions {
  /**
   * `fixed-window` only: windows start at whole multiples of their length since 1970 (UTC), not at
   * the first request.
   */
  align?: 'clock' | undefined
}

export interface FixedWindowSettings {
  /** `fixed-window`: true when windows start at multiples of `windowMs` since the epoch. */
  readonly clockAligned: boolean
  /** `fixed-window`: the windows of a calendar; `undefined` when all are `windowMs` long. */
  readonly calendar: Calendar | undefined
}

type Check = CountingCheck<FixedWindowSettings>

/** `startMs` is −1 when no window is open. */
export interface FixedWindow extends KeyState {
  startMs: number
  count: number
}

/**
 * Counts from the window's first charge, from a multiple of the window if aligned to the clock, or
 * from midnight in a time zone.
 */
export const fixedWindow: Algorithm<FixedWindow, FixedWindowSettings, FixedWindowOptions> = {
  ...flatWindow(newWindow),
  counts: 'units',
  keyName: 'window',
  keyShape: ({ windowMs, clockAligned, calendar }) =>
    calendar ? `${calendar.every}-${calendar.zone}` : `${windowMs}${clockAligned ? '-clock' : ''}`,
  describe: ({ windowMs, clockAligned, calendar }) =>
    calendar
      ? `fixed-window over every ${calendar.every} in ${calendar.zone}`
      : `fixed-window over ${windowMs} ms${clockAligned ? ' aligned to the clock' : ''}`,
  // A day on which the clock is set back is longer.
  lifeMs: ({ windowMs, calendar }) => windowMs + (calendar ? 7_200_000 : 0),
  options: {
    fields: { align: { form: 'text', text: 'clock' } },
    hasCalendar: true,
    windowMs({ window }, at) {
      const calendar = calendarOf(window, at('window'))
      return calendar && calendarMs[calendar.every]
    },
    read({ align, window }, _windowMs, at) {
      const calendar = calendarOf(window, at('window'))
      const label = { option: at('align') }
      if (calendar && align) throw invalid(label, align, 'left out beside { every, zone }')
      const clockAligned = align !== undefined && oneOf(align, label, ['clock']) === 'clock'
      return { clockAligned, calendar }
    },
  },

  clamp(state, check, now) {
    const { clockAligned, calendar } = check.policy
    // An aligned window ends only once, even if the clock is set back to before its start.
    const startMs = clockAligned || calendar ? endOf(check, startAt(check, now)) : now
    return state.startMs <= startMs ? state : { ...state, startMs }
  },

  used: (state, check, now) => (isOpen(state, check, now) ? state.count : 0),

  msUntil(state, check, { now, target }) {
    return fixedWindow.used(state, check, now) <= target ? 0 : endOf(check, state.startMs) - now
  },

  resetMs(state, check, now) {
    const { windowMs, calendar } = check.policy
    if (check.limit > 0 && isOpen(state, check, now)) return endOf(check, state.startMs) - now
    return calendar ? endOf(check, now) - now : windowMs
  },

  take(state, check, now) {
    if (!isOpen(state, check, now)) {
      state.startMs = startAt(check, now)
      state.count = 0
    }
    state.count = Math.min(state.count + check.cost, maxUnits(check.policy))
    state.limit = check.limit
    return state.startMs
  },

  takeUsual(state, check, now) {
    const { cost, limit } = check
    const isNew = state.startMs < 0
    const startMs = isNew ? startAt(check, now) : state.startMs
    const endMs = endOf(check, startMs)
    const count = (isNew ? 0 : state.count) + cost
    if (startMs > now || endMs <= now || count > limit) return undefined
    state.startMs = startMs
    state.count = count
    state.limit = limit
    return taken(startMs, limit - count, endMs - now)
  },

  giveBack(state, held, now) {
    if (state.startMs !== held.receipt.at || !isOpen(state, held, now)) return false
    const before = state.count
    state.count = unitsLeft(held, before)
    return state.count < before
  },

  endsAt: (state, check) => endOf(check, state.startMs),

  fromTwin({ limit }, { amount, detail, aheadMs }, now) {
    const startMs = detail === 0 ? -1 : now + aheadMs - detail + 1
    return { state: { startMs, count: amount, limit }, at: startMs }
  },

  luaSetting({ policy: { clockAligned, calendar } }, now) {
    if (calendar) return calendar.boundsAt(now).join()
    return clockAligned ? 1 : undefined
  },
}

function newWindow(): FixedWindow {
  return { startMs: -1, count: 0, limit: 0 }
}

function isOpen(state: FixedWindow, check: Check, now: number): boolean {
  return state.startMs >= 0 && now < endOf(check, state.startMs)
}

function startAt({ policy: { calendar, clockAligned, windowMs } }: Check, now: number): number {
  if (calendar) return calendar.boundsAt(now)[1]
  return clockAligned ? now - (now % windowMs) : now
}

/** The end of a window that starts at `startMs`, or of the calendar window that contains it. */
function endOf({ policy: { calendar, windowMs } }: Check, startMs: number): number {
  return calendar && startMs >= 0 ? calendar.boundsAt(startMs)[2] : startMs + windowMs
}
