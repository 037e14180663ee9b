import type { Algorithm, CountingCheck, KeyState } from './algorithm.ts'
import { flatWindow, noOptions } from './window.ts'

/** Durations of the blocks of a penalty. */
export interface PenaltySettings {
  readonly forMs: number
  /** Factor by which each further block grows. */
  readonly factor: number
  readonly maxMs: number
}

export interface PenaltyOwnSettings {
  /** `penalty`: blocks caused by strikes; `undefined` if no strikes are counted. */
  readonly penalty: PenaltySettings | undefined
}

type Check = CountingCheck<PenaltyOwnSettings>

/** Strikes of one key, and its block, caused by strikes or by `limiter.block`. */
export interface Penalised extends KeyState {
  strikes: number
  /** Time of the first strike in the window. */
  sinceMs: number
  blockedUntil: number
  /** Duration (ms) of the block when it was set: setting a clock back does not extend it. */
  askedMs: number
  /** Duration (ms) of the last block caused by strikes; 0 for none. */
  penaltyMs: number
  /** The window in which the strikes were counted. */
  withinMs: number
}

/**
 * Blocks a key that collects `limit` strikes in a window, which starts with the first strike. The
 * next block is longer if it begins soon after the last one: within that block's duration, or
 * within a window if that is longer. A blocked key collects no strikes.
 */
export const penalty: Algorithm<Penalised, PenaltyOwnSettings> = {
  ...flatWindow(newPenalised),
  counts: 'strikes',
  keyName: 'penalty',
  // One state for all settings: a key that is blocked in one place is blocked everywhere.
  keyShape: () => '',
  describe: ({ windowMs, penalty: settings }) =>
    settings ? `penalty within ${windowMs} ms` : 'penalty by hand',
  // Manual and automatic penalties can share a key. Two windows cannot: the shorter one would clear
  // the strikes of the longer one.
  agrees: (one, other) => !one.penalty || !other.penalty || one.windowMs === other.windowMs,
  options: { ...noOptions, read: () => ({ penalty: undefined }) },

  clamp(state, _check, now) {
    const sinceMs = Math.min(state.sinceMs, now)
    const blockedUntil = Math.min(state.blockedUntil, now + state.askedMs)
    const isSame = sinceMs === state.sinceMs && blockedUntil === state.blockedUntil
    return isSame ? state : { ...state, sinceMs, blockedUntil }
  },

  used(state, check, now) {
    if (now < state.blockedUntil) return check.limit
    return isOpen(state, check, now) ? state.strikes : 0
  },

  msUntil: (state, _check, { now }) => Math.max(0, state.blockedUntil - now),

  take(state, check, now) {
    const { cost, limit } = check
    const { penalty: settings, windowMs } = check.policy
    if (!settings || now < state.blockedUntil) return now
    if (!isOpen(state, check, now)) {
      state.strikes = 0
      state.sinceMs = now
    }
    state.strikes += cost
    state.withinMs = windowMs
    state.limit = limit
    if (state.strikes < limit) return now
    const lastMs = now < forgottenAt(state, windowMs) ? state.penaltyMs : 0
    const { forMs, factor, maxMs } = settings
    state.penaltyMs = lastMs === 0 ? forMs : Math.min(maxMs, Math.floor(lastMs * factor))
    beginBlock(state, state.penaltyMs, now)
    return now
  },

  giveBack: () => false,

  block(state, { limit, policy, blockMs }, now) {
    state.withinMs = policy.windowMs
    state.limit = limit
    beginBlock(state, blockMs, now)
  },

  endsAt(state) {
    const { strikes, sinceMs, withinMs } = state
    const strikesEndAt = strikes > 0 ? sinceMs + withinMs : 0
    return Math.max(strikesEndAt, forgottenAt(state, withinMs))
  },

  fromTwin({ limit }, { amount, detail }, now) {
    const blockedUntil = now + detail
    const state = { ...newPenalised(), strikes: amount, sinceMs: now, blockedUntil, limit }
    return { state, at: now }
  },

  luaSetting({ policy: { penalty } }) {
    return penalty && `${penalty.forMs};${penalty.factor};${penalty.maxMs}`
  },
}

function newPenalised(): Penalised {
  return {
    strikes: 0,
    sinceMs: 0,
    blockedUntil: 0,
    askedMs: 0,
    penaltyMs: 0,
    withinMs: 0,
    limit: 0,
  }
}

function isOpen({ strikes, sinceMs }: Penalised, { policy }: Check, now: number): boolean {
  return strikes > 0 && now < sinceMs + policy.windowMs
}

/** Time from which the next block counts as a first one. */
function forgottenAt({ blockedUntil, penaltyMs }: Penalised, withinMs: number): number {
  return penaltyMs === 0 ? blockedUntil : blockedUntil + Math.max(withinMs, penaltyMs)
}

function beginBlock(state: Penalised, durationMs: number, now: number): void {
  state.strikes = 0
  state.blockedUntil = now + durationMs
  state.askedMs = durationMs
}
