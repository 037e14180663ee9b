import type { ClosedGrant, GrantTerms, TakenGrant } from './grant.ts'

/** The fields that every state has. */
export interface KeyState {
  /** The limit of the last request. */
  limit: number
}

/** The fields of a policy that algorithms read. */
type CountedPolicy<Settings> = Settings & { readonly windowMs: number }

/** The fields of a check that algorithms read. */
export interface CountingCheck<Settings> {
  readonly policy: CountedPolicy<Settings>
  readonly cost: number
  readonly limit: number
  /** For a refund: units of the receipt that were given back before. @default 0 */
  readonly refunded?: number
}

/** The options that only one algorithm has. */
export interface OwnOptions<Options, Settings> {
  /** Their forms; other algorithms refuse them. */
  readonly fields: { readonly [field in keyof Options & string]-?: OptionForm }
  /** The settings of a policy that counts in another way. */
  readonly neutral: Settings
  /**
   * Milliseconds that take the place of the option `window`. Left out by algorithms that need a
   * window; `undefined` if the option is a duration.
   */
  windowMs?(options: Options & { window?: unknown }, at: OptionPath): number | undefined
  /** True if windows may be those of a calendar. @default false */
  readonly hasCalendar?: boolean
  /**
   * Checks the options.
   * @throws SluiceError for an option that is out of range
   */
  read(options: Options & { window?: unknown }, windowMs: number, at: OptionPath): Settings
}

/** The form of an option, for the schema of policy files. */
export type OptionForm =
  | { readonly form: 'duration' }
  | { readonly form: 'units'; readonly min: number }
  | { readonly form: 'text'; readonly text: string }

/** Names a field in a message as the user writes it: `policies[1].burst`. */
export type OptionPath = (field: string) => string

/**
 * All that is special about an algorithm beside how it counts. Other modules ask for these traits,
 * and never for the name of an algorithm.
 */
interface Traits<State, Options, Settings extends object> {
  /**
   * - `units` come back with time
   * - `leases` come back when their request ends; a denial says nothing about the next requests
   * - `strikes` are taken by denials alone, and never come back
   */
  readonly counts: 'units' | 'leases' | 'strikes'
  /**
   * True when each unit is kept with its time, so that a store may have to bound the limit.
   * @default false
   */
  readonly keepsEachUnit?: boolean
  /**
   * The name of the algorithm in the keys of a shared store: short, and unlike all others. A new
   * name empties all counts.
   */
  readonly keyName: string
  /**
   * The settings that a stored state depends on, as text for keys: `60000`. Two policies that
   * cannot read each other's states must differ.
   */
  keyShape(policy: CountedPolicy<Settings>): string
  /** The same in words, for messages: all that must agree wherever a name is used. */
  describe(policy: CountedPolicy<Settings>): string
  /**
   * Tells whether two policies of one name can share their states.
   * @default when they are described alike
   */
  agrees?(one: CountedPolicy<Settings>, other: CountedPolicy<Settings>): boolean
  /** True when all units come back at the end of the window. @default false */
  readonly resetsAtEnd?: boolean
  /** The longest that a unit counts, in ms. */
  lifeMs(policy: CountedPolicy<Settings>): number
  /**
   * The settings that one of `instances` processes applies when it decides alone; undefined when
   * they stay. The limit is divided elsewhere, except of strikes.
   */
  divide?(settings: Settings, instances: number): Partial<Settings> | undefined
  readonly options: OwnOptions<Options, Settings>
  /** Turns a state into whole numbers, and back, for stores that keep bytes. */
  readonly codec: Codec<State>
}

/** The report that the Lua twin of an algorithm makes of a key, after all checks of a request. */
export interface TwinReading {
  /** Two numbers whose meaning the `report` function of the twin gives. */
  readonly amount: number
  readonly detail: number
  readonly incarnation: number
  /** Ms to wait, or to be held; `undefined` if `amount` and `detail` tell. */
  readonly explicitMs: number | undefined
  /** Ms by which the time of the key is ahead of a clock that was set back. */
  readonly aheadMs: number
}

/** A state with the usage of a report, to be read at the time of the report alone. */
interface ReadState<State> {
  readonly state: State
  /** The value that a refund has to name, as `take` returns it. */
  readonly at: number
  /** Ms that a denied request has to wait. @default by the state */
  readonly waitMs?: number | undefined
  /** Ms that an allowed request is held. @default 0 */
  readonly delayMs?: number
}

/** The charge of a usual request, and the usage after it. */
export interface Taken {
  /** The value that a refund has to name, as `take` returns it. */
  at: number
  remaining: number
  resetMs: number
  /** Ms that the request is held. */
  delayMs: number
}

/** The last charge, until the next one: one object for all, since there are many. */
const lastTaken: Taken = { at: 0, remaining: 0, resetMs: 0, delayMs: 0 }
export function taken(at: number, remaining: number, resetMs: number): Taken {
  lastTaken.at = at
  lastTaken.remaining = remaining
  lastTaken.resetMs = resetMs
  lastTaken.delayMs = 0
  return lastTaken
}

export interface Codec<State> {
  save(state: State): readonly number[]
  /** Returns `undefined` for numbers that `save` did not write. */
  load(numbers: readonly number[]): State | undefined
}

/**
 * One way to count. A state belongs to one key of one policy; times are whole milliseconds, units
 * whole numbers. The functions know no clock, no randomness and no I/O; those that change the state
 * they are given say so. Each algorithm has a twin of the same name in `@sluice/redis`, in Lua.
 */
export interface Algorithm<
  State extends KeyState = KeyState,
  Settings extends object = object,
  Options = object,
> extends Traits<State, Options, Settings> {
  /** The state of a key that has taken nothing. */
  create(): State
  /** The most units that may count at once. */
  capacity(check: CountingCheck<Settings>): number
  /** The units that `remaining` is counted down from. @default the capacity */
  quota?(check: CountingCheck<Settings>): number
  /** The level that a bucket may be filled to, in units · ms. Left out by all others. */
  capacityLevel?(check: CountingCheck<Settings>): number
  /**
   * Returns the state with no stored time after `now`, since a clock may be set back. If time that
   * counted once must not count again, it lies at most a window after `now`. Returns the same
   * object when nothing changes.
   */
  clamp(state: State, check: CountingCheck<Settings>, now: number): State
  /** Units that count at `now`. */
  used(state: State, check: CountingCheck<Settings>, now: number): number
  /**
   * Milliseconds until no more than `target` units count, if nothing else is taken; 0 when that
   * holds at `now`. A hint where units come back when requests end, and not with time.
   */
  msUntil(state: State, check: CountingCheck<Settings>, at: { now: number; target: number }): number
  /**
   * The effective window of the remaining units (see `effectiveWindowMs`), if `used` units count.
   * `undefined` if units do not come back with time.
   */
  resetMs(
    state: State,
    check: CountingCheck<Settings>,
    at: { now: number; used: number },
  ): number | undefined
  /**
   * Returns the ms that a request that is allowed at `now` has to be held. Left out by algorithms
   * that hold none.
   */
  delayMs?(state: State, check: CountingCheck<Settings>, now: number): number
  /**
   * Records `check.cost` units, asked or not, and forgets what no longer counts. Changes the state.
   * @returns what a refund has to name: a time, or the number of a lease
   */
  take(state: State, check: CountingCheck<Settings>, now: number): number
  /**
   * Takes a check that fits a state which is new, or counts at `now` and has no times after it, as
   * most requests find it. One call does the work of the functions above, and of `take`. If it
   * returns `undefined`, it has changed nothing, and those functions have to decide.
   */
  takeUsual?(state: State, check: CountingCheck<Settings>, now: number): Taken | undefined
  /**
   * Tells whether taking `check` would lose units, since the state is at its maximum. Units that
   * were taken before can then not be given back, since others would pay for them. Left out by
   * algorithms whose `giveBack` can tell by itself.
   */
  overflows?(state: State, check: CountingCheck<Settings>, now: number): boolean
  /**
   * Gives back up to `check.cost` units that `take` named `at` and that still count; returns
   * whether there were any. Changes the state.
   */
  giveBack(
    state: State,
    check: CountingCheck<Settings>,
    times: { now: number; at: number },
  ): boolean
  /**
   * Prolongs the lease that `take` named `at`, where it still runs; returns whether it does.
   * Changes the state.
   */
  renew?(state: State, check: CountingCheck<Settings>, times: { now: number; at: number }): boolean
  /**
   * Denies all for exactly `blockMs` from now. Only where keys can be blocked. Changes the
   * state.
   */
  block?(
    state: State,
    check: CountingCheck<Settings>,
    times: { now: number; blockMs: number },
  ): void
  /**
   * Closes grants and takes another one. Changes the state. Left out by algorithms without grants.
   */
  takeGrant?(
    state: State,
    check: CountingCheck<Settings>,
    at: { now: number; terms: GrantTerms },
  ): TakenGrant
  /**
   * Returns the state of a key that is forgotten while processes hold units of it; `undefined` if
   * none does.
   */
  afterReset?(state: State, closed?: readonly ClosedGrant[]): State | undefined
  /** The time from which the state is the same as none. */
  endsAt(state: State, check: CountingCheck<Settings>): number
  /** Reads what the twin reports, at `now` by its clock. */
  fromTwin(check: CountingCheck<Settings>, report: TwinReading, now: number): ReadState<State>
  /**
   * Returns what the twin reads of a check beside the limit and the window, as `policy.setting`;
   * `undefined` for the value that it assumes. Left out by twins that read nothing else. A text
   * depends on `now`, by a clock that may differ from the store's.
   */
  luaSetting?(check: CountingCheck<Settings>, now: number): number | string | undefined
}
