import type { Check } from '../check.ts'

/**
 * One way to count. A state belongs to one key of one policy; times are whole milliseconds, units whole numbers. The
 * functions know no clock, no randomness and no I/O; those that change the state they are given say so. Each
 * algorithm has a twin of the same name and the same functions in `@sluice/redis`, in Lua.
 */
export interface Algorithm<State> {
  /** The state of a key that has taken nothing. */
  create(): State
  /**
   * The state with stored times that lie after `now` moved to now, since the clock was set back; the same object when there
   * are none.
   */
  settle(state: State, check: Check, now: number): State
  /** Units that count at `now`. */
  used(state: State, check: Check, now: number): number
  /** Milliseconds until no more than `target` units count, if nothing else is taken; 0 when that holds at `now`. */
  msUntil(state: State, check: Check, at: { now: number; target: number }): number
  /** The effective window of what remains (see `effectiveWindowMs`). */
  resetMs(state: State, check: Check, now: number): number
  /**
   * Records `check.cost` units, asked or not, and forgets what no longer counts. Changes the state.
   * @returns the time that a refund has to name
   */
  take(state: State, check: Check, now: number): number
  /** Gives back up to `check.cost` units that were taken at `at` and still count. Changes the state. */
  giveBack(state: State, check: Check, times: { now: number; at: number }): void
  /** The time from which the state is the same as none. */
  endsAt(state: State, check: Check): number
}
