import type { Check } from '../check.ts'

/** What every state says of itself. */
export interface Counted {
  /** The limit of the last charge. */
  limit: number
}

/**
 * One way to count. A state belongs to one key of one policy; times are whole milliseconds, units whole numbers. The
 * functions know no clock, no randomness and no I/O; those that change the state they are given say so. Each
 * algorithm has a twin of the same name in `@sluice/redis`, in Lua.
 */
export interface Algorithm<State extends Counted> {
  /** The state of a key that has taken nothing. */
  create(): State
  /** The most units that may count at once. */
  capacity(check: Check): number
  /** The level that a bucket may be filled to, in units · ms. Left out by all others. */
  capacityLevel?(check: Check): number
  /**
   * The state with stored times that lie after `now` moved to now, since the clock was set back; the same object when there
   * are none.
   */
  settle(state: State, check: Check, now: number): State
  /** Units that count at `now`. */
  used(state: State, check: Check, now: number): number
  /**
   * Milliseconds until no more than `target` units count, if nothing else is taken; 0 when that holds at `now`. A hint where
   * units come back when requests end, and not with time.
   */
  msUntil(state: State, check: Check, at: { now: number; target: number }): number
  /** The effective window of what remains (see `effectiveWindowMs`); `undefined` where units do not come back with time. */
  resetMs(state: State, check: Check, now: number): number | undefined
  /** How long a request that is allowed at `now` has to be held. Left out where none ever is. */
  delayMs?(state: State, check: Check, now: number): number
  /**
   * Records `check.cost` units, asked or not, and forgets what no longer counts. Changes the state.
   * @returns what a refund has to name: a time, or the number of a lease
   */
  take(state: State, check: Check, now: number): number
  /**
   * Whether taking `check` would lose units, since no more can count. Then nothing can be given back any more that was taken until then, or it
   * would be given back at the expense of others. Left out where `giveBack` can tell by itself.
   */
  overflows?(state: State, check: Check, now: number): boolean
  /** Gives back up to `check.cost` units that `take` named `at` and that still count; returns whether there were any. Changes the state. */
  giveBack(state: State, check: Check, times: { now: number; at: number }): boolean
  /** Prolongs the lease that `take` named `at`, where it still runs; returns whether it does. Changes the state. */
  renew?(state: State, check: Check, times: { now: number; at: number }): boolean
  /** Denies all for `check.cost` ms from now, and no longer than that. Only where keys can be blocked. Changes the state. */
  block?(state: State, check: Check, now: number): void
  /** The time from which the state is the same as none. */
  endsAt(state: State, check: Check): number
}
