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
}

/** Asks when at most `target` units count, if nothing else is taken after `now`. */
export type Target = { readonly now: number; readonly target: number }

/** The fields of a check whose units were taken before. */
interface HeldCheck<Settings> extends CountingCheck<Settings> {
  /** `at` is the value that `take` returned. */
  readonly receipt: { readonly at: number }
  /** Units of the receipt that earlier refunds gave back. @default 0 */
  readonly refunded?: number
}

/** Options specific to one algorithm. */
export interface OwnOptions<Options, Settings> {
  /** Schemas of the options; other algorithms reject them. */
  readonly fields: { readonly [field in keyof NoInfer<Options> & string]-?: OptionForm }
  /**
   * Replaces the option `window`, in ms; `undefined` if the option is a duration. Absent if the
   * algorithm requires a window.
   */
  windowMs?(options: Options & { window?: unknown }, at: OptionPath): number | undefined
  /** True if calendar windows are allowed. @default false */
  readonly hasCalendar?: boolean
  /**
   * Checks the options. Without any of its own, it returns settings for a policy of another
   * algorithm.
   * @throws SluiceError for an option that is out of range
   */
  read(options: Options & { window?: unknown }, windowMs: number, at: OptionPath): Settings
}

/** The type of an option, for the schema of policy files. */
export type OptionForm =
  | { readonly form: 'duration' }
  | { readonly form: 'units'; readonly min: number }
  | { readonly form: 'text'; readonly text: string }

/** Names a field in a message as the user writes it: `policies[1].burst`. */
export type OptionPath = (field: string) => string

/** The Lua twin's report about a key, after all checks of a request. */
export interface TwinReading {
  /** Two numbers, defined by the twin's `report` function. */
  readonly amount: number
  readonly detail: number
  readonly incarnation: number
  /** Ms to wait or to be held; `undefined` if `amount` and `detail` determine it. */
  readonly explicitMs: number | undefined
  /** Ms by which the key's time is ahead of a clock that was set back. */
  readonly aheadMs: number
}

/** A state rebuilt from a report, valid only at the time of the report. */
interface ReadState<State> {
  readonly state: State
  /** The value that a refund has to name, as `take` returns it. */
  readonly at: number
  /** Ms that a denied request has to wait. @default by the state */
  readonly waitMs?: number | undefined
  /** Ms that an allowed request is held. @default 0 */
  readonly delayMs?: number
}

/** The last charge. The object is reused by every charge, to avoid garbage. */
const lastTaken = { at: 0, remaining: 0, resetMs: 0, delayMs: 0 }

/**
 * The charge of a typical request, and the usage after it. `at` is the value that a refund has to
 * name, as `take` returns it. The request is held for `delayMs`.
 */
export type Taken = typeof lastTaken

export function taken(at: number, remaining: number, resetMs: number): Taken {
  lastTaken.at = at
  lastTaken.remaining = remaining
  lastTaken.resetMs = resetMs
  lastTaken.delayMs = 0
  return lastTaken
}

/**
 * An algorithm. A state belongs to one key of one policy; times are whole milliseconds, units whole
 * numbers. The functions use no clock, randomness or I/O; those that mutate their state say so.
 * Other modules check its properties, never its name. Each algorithm has a Lua twin of the same
 * name in `@sluice/redis`.
 */
export interface Algorithm<
  State extends KeyState = KeyState,
  Settings extends object = object,
  Options = object,
> {
  /**
   * - `units` come back with time
   * - `leases` come back when their request ends; a denial does not predict the next decision
   * - `strikes` are taken only by denials, and never come back
   */
  readonly counts: 'units' | 'leases' | 'strikes'
  /**
   * True when each unit is stored with its time, so a store may have to cap the limit.
   * @default false
   */
  readonly keepsEachUnit?: boolean
  /**
   * The algorithm's name in the keys of a shared store: short and unique. Renaming resets all
   * counts.
   */
  readonly keyName: string
  /**
   * The settings that a stored state depends on, as a string for keys: `60000`. It must differ for
   * policies that cannot read each other's states.
   */
  keyShape(policy: CountedPolicy<Settings>): string
  /**
   * The same in words, for messages: the settings that must match wherever a name is used.
   * @default the algorithm and the window
   */
  describe?(policy: CountedPolicy<Settings>): string
  /**
   * Returns whether two policies with the same name can share states.
   * @default true when their `keyShape` is the same
   */
  agrees?(one: CountedPolicy<Settings>, other: CountedPolicy<Settings>): boolean
  /** The longest time that a unit counts, in ms. */
  lifeMs(policy: CountedPolicy<Settings>): number
  /**
   * Settings for one of `instances` processes when it decides alone; `undefined` when unchanged.
   * The limit is divided elsewhere, except for strikes.
   */
  divide?(settings: Settings, instances: number): Partial<Settings> | undefined
  readonly options: OwnOptions<Options, Settings>
  /** Converts a state to integers and back, for stores that keep bytes. */
  readonly codec: {
    save(state: State): readonly number[]
    /** Returns `undefined` for numbers that `save` did not write. */
    load(numbers: readonly number[]): State | undefined
  }
  /** The state of a key that has taken nothing. */
  create(): State
  /** The most units that may count at once. */
  capacity(check: CountingCheck<Settings>): number
  /** The number of units that `remaining` starts from. @default the capacity */
  quota?(check: CountingCheck<Settings>): number
  /** The highest level of a bucket, in units · ms. Only buckets have it. */
  capacityLevel?(check: CountingCheck<Settings>): number
  /**
   * Returns the state with no stored time after `now`, since a clock may be set back. If the same
   * time must not count twice, stored times may be up to a window after `now`. Returns the same
   * object if nothing changes.
   */
  clamp(state: State, check: CountingCheck<Settings>, now: number): State
  /** Units that count at `now`. */
  used(state: State, check: CountingCheck<Settings>, now: number): number
  /**
   * Milliseconds until at most `target` units count, if nothing else is taken; 0 if that is true at
   * `now`. Only a hint if units come back when requests end, not with time.
   */
  msUntil(state: State, check: CountingCheck<Settings>, at: Target): number
  /**
   * Milliseconds until the window ends, if all units come back at that moment.
   * @default the effective window of the remaining units, or none if time brings no units back
   */
  resetMs?(state: State, check: CountingCheck<Settings>, now: number): number
  /** Ms to hold a request that is allowed at `now`. Absent if the algorithm holds no requests. */
  delayMs?(state: State, check: CountingCheck<Settings>, now: number): number
  /**
   * Records `check.cost` units, even beyond the limit, and drops expired ones. Mutates the state.
   * @returns the value that a refund must name: a time, or the number of a lease
   */
  take(state: State, check: CountingCheck<Settings>, now: number): number
  /**
   * Fast path for a check that fits a state that is new, or counts at `now` and has no times after
   * it, as for most requests. It replaces the functions above and `take`. If it returns
   * `undefined`, it has changed nothing, and those functions decide.
   */
  takeUsual?(state: State, check: CountingCheck<Settings>, now: number): Taken | undefined
  /**
   * Returns whether taking `check` would lose units because the state is at its maximum. Units that
   * were taken earlier can then not be given back, since others would pay for them. Absent if
   * `giveBack` detects this itself.
   */
  overflows?(state: State, check: CountingCheck<Settings>, now: number): boolean
  /**
   * Gives back up to `held.cost` of the receipt's units, as far as they still count. Returns
   * whether there were any. Mutates the state.
   */
  giveBack(state: State, held: HeldCheck<Settings>, now: number): boolean
  /** Extends the receipt's lease. Returns whether it was still running. Mutates the state. */
  renew?(state: State, held: HeldCheck<Settings>, now: number): boolean
  /**
   * Denies everything for exactly `blockMs` from now. Absent if keys cannot be blocked. Mutates the
   * state.
   */
  block?(state: State, check: CountingCheck<Settings> & { blockMs: number }, now: number): void
  /** Closes grants and takes another one. Mutates the state. Absent without grants. */
  takeGrant?(
    state: State,
    check: CountingCheck<Settings> & { terms: GrantTerms },
    now: number,
  ): TakenGrant
  /**
   * The state of a key that is reset while processes hold units of it; `undefined` if none does.
   */
  afterReset?(state: State, closed?: readonly ClosedGrant[]): State | undefined
  /** The time from which the state equals an empty one. */
  endsAt(state: State, check: CountingCheck<Settings>): number
  /** Rebuilds a state from the twin's report, at `now` by the twin's clock. */
  fromTwin(check: CountingCheck<Settings>, report: TwinReading, now: number): ReadState<State>
  /**
   * The twin's `policy.setting`; `undefined` for its default. Absent if the twin reads only limit
   * and window. It may depend on `now`, by a clock that may differ from the store's, for a policy
   * that no script in `lua/usual` decides.
   */
  luaSetting?(check: CountingCheck<Settings>, now: number): number | string | undefined
}
