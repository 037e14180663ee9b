import { oneOf } from '../options/options.ts'
import { type Algorithm, type CountingCheck, type KeyState, taken } from './algorithm.ts'
import { flatCodec, plainWindow } from './flat-codec.ts'
import { maxUnits } from './max-units.ts'

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
}

type Check = CountingCheck<FixedWindowSettings>

/** `startMs` is −1 when no window is open. */
export interface FixedWindow extends KeyState {
  startMs: number
  count: number
}

/**
 * A count since the window's first charge, or since a multiple of the window when aligned to the
 * clock.
 */
export const fixedWindow: Algorithm<FixedWindow, FixedWindowSettings, FixedWindowOptions> = {
  ...plainWindow,
  counts: 'units',
  keyName: 'window',
  keyShape: ({ windowMs, clockAligned }) => `${windowMs}${clockAligned ? '-clock' : ''}`,
  describe: ({ windowMs, clockAligned }) =>
    `fixed-window over ${windowMs} ms${clockAligned ? ' aligned to the clock' : ''}`,
  options: {
    fields: { align: { form: 'text', text: 'clock' } },
    neutral: { clockAligned: false },
    read: ({ align }, _windowMs, at) => ({
      clockAligned:
        align !== undefined && oneOf(align, { option: at('align') }, ['clock']) === 'clock',
    }),
  },
  codec: flatCodec(newWindow, ['startMs', 'count', 'limit']),

  create: newWindow,

  capacity: ({ limit }) => limit,

  clamp(state, check, now) {
    const { clockAligned, windowMs } = check.policy
    // A window of the clock ends once, also if the clock is set back to before its start.
    const startMs = clockAligned ? startAt(check, now) + windowMs : now
    return state.startMs <= startMs ? state : { ...state, startMs }
  },

  used: (state, check, now) => (isOpen(state, check, now) ? state.count : 0),

  msUntil(state, check, { now, target }) {
    return fixedWindow.used(state, check, now) <= target
      ? 0
      : state.startMs + check.policy.windowMs - now
  },

  resetMs(state, check, { now }) {
    const { windowMs } = check.policy
    return check.limit > 0 && isOpen(state, check, now) ? state.startMs + windowMs - now : windowMs
  },

  take(state, check, now) {
    if (!isOpen(state, check, now)) {
      state.startMs = startAt(check, now)
      state.count = 0
    }
    state.count = Math.min(state.count + check.cost, maxUnits(check.policy.windowMs))
    state.limit = check.limit
    return state.startMs
  },

  takeUsual(state, check, now) {
    const used = fixedWindow.used(state, check, now) + check.cost
    if (state.startMs > now || used > check.limit) return undefined
    const at = fixedWindow.take(state, check, now)
    return taken(at, used, fixedWindow.resetMs(state, check, { now, used }))
  },

  giveBack(state, check, { now, at }) {
    if (state.startMs !== at || !isOpen(state, check, now)) return false
    const before = state.count
    state.count = unitsLeft(check, before)
    return state.count < before
  },

  endsAt: (state, check) => state.startMs + check.policy.windowMs,

  fromTwin({ limit }, { amount, detail, aheadMs }, now) {
    const startMs = detail === 0 ? -1 : now + aheadMs - detail + 1
    return { state: { startMs, count: amount, limit }, at: startMs }
  },

  luaSetting: ({ policy }) => (policy.clockAligned ? 1 : undefined),
}

function newWindow(): FixedWindow {
  return { startMs: -1, count: 0, limit: 0 }
}

/**
 * Returns a count after a refund. A count at its maximum has lost units, and gives nothing back.
 */
export function unitsLeft({ cost, policy }: CountingCheck<object>, count: number): number {
  return count >= maxUnits(policy.windowMs) ? count : Math.max(0, count - cost)
}

function isOpen(state: FixedWindow, check: Check, now: number): boolean {
  return state.startMs >= 0 && now < state.startMs + check.policy.windowMs
}

function startAt(check: Check, now: number): number {
  return check.policy.clockAligned ? now - (now % check.policy.windowMs) : now
}
