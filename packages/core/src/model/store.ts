import type { MaybePromise } from '../runtime/maybe-promise.ts'
import type { ControlCall } from '../waiting/control-call.ts'
import type { BlockCheck, Check, GrantCheck, Held, Receipt, ResetCheck } from './check.ts'
import type { Documents } from './documents.ts'
import type { Policy } from './policy.ts'
import type { StoreRegion } from './region.ts'
import type { ResilienceEvent } from './resilience-event.ts'

/**
 * - `consume`: takes the units of every check, or none if one denies. Then only `countDenied`
 *   policies are charged. A penalty takes nothing from an allowed request, and a strike from a
 *   request that others deny
 * - `peek`: answers as `consume` would, and changes nothing
 * - `charge`: takes the units without asking
 */
export type DecidingOp = 'consume' | 'peek' | 'charge'

/**
 * - `refund`: gives back up to `cost` units of the receipts, as far as they still count
 * - `release`: ends the leases that the receipts hold, as far as they still run
 * - `renew`: prolongs those leases
 * - `reset`: forgets the keys
 * - `block`: has a penalty deny its keys for `blockMs`, whatever they were blocked for before
 */
export type Change =
  | { readonly op: 'refund' | 'release' | 'renew'; readonly checks: readonly Held[] }
  | ManualChange

/** A change by hand. */
export type ManualChange =
  | { readonly op: 'reset'; readonly checks: readonly ResetCheck[] }
  | { readonly op: 'block'; readonly checks: readonly BlockCheck[] }

/** An operation of a store. */
export type StoreOp = DecidingOp | Change['op']

/** The outcome of one check. All times are whole milliseconds. */
export interface Outcome {
  readonly policy: Policy
  /** True when this policy lets the request pass, before it counts a denial. */
  readonly allowed: boolean
  /** The limit that was applied; `Infinity` when the policy is unlimited. */
  readonly limit: number
  /** Units left: whole, never negative, never above the limit; `undefined` when unknown. */
  readonly remaining: number | undefined
  /** The effective window of the remaining units; `undefined` if the policy has none. */
  readonly resetMs: number | undefined
  /**
   * The wait of a lone client, `Infinity` when waiting cannot help. 0 when allowed, unless the
   * policy has counted a denial (`countDenied`) and is full now.
   */
  readonly retryAfterMs: number
  /** The ms to hold the request before it continues; above 0 only for an allowed `leaky-bucket`. */
  readonly delayMs: number
  /** Opaque: the units that a refund gives back. `undefined` when nothing was taken. */
  readonly receipt: Receipt | undefined
}

/** The answer to one `GrantCheck`. */
export interface Granted {
  /** The units that the process may spend without asking; 0 for none. */
  readonly units: number
  /** The units of the key that are left beside all grants, and its effective window in ms. */
  readonly remaining: number | undefined
  readonly resetMs: number | undefined
  /** The receipt for the spent units of the closed grants; `undefined` for none. */
  readonly settled: Receipt | undefined
}

/** A cancellation flag: checks that no request waits for any more need not be sent. */
export interface Cancellation {
  readonly isUnwanted: boolean
  /** For a change that must not be made after its deadline: `reset` and `block`. */
  readonly control?: ControlCall | undefined
}

/** One request's checks on their way through a store that answers later: an item of its queue. */
export interface Ask extends Cancellation {
  readonly op: DecidingOp
  /** A store that cannot hold a limit puts checks of a smaller one in their place. */
  checks: readonly Check[]
  /** For the store: its names for the keys of the checks. Empty until it says so. */
  keys: readonly string[]
  /**
   * Outcomes stand in the order of the checks. To be called once, or `fail`; at once, where nobody
   * has to be asked.
   */
  settle(outcomes: readonly Outcome[]): void
  fail(error: unknown): void
}

/** One call of a store to where its counts are. */
export interface StoreCall {
  /** Requests that travelled together. */
  readonly requests: number
  /** Checks of all of them. */
  readonly checks: number
  /** Milliseconds since 1970. */
  readonly startedAt: number
  readonly durationMs: number
  readonly failed: boolean
}

/** A small text of one process, for the others of its fleet. */
export interface FleetReport {
  /** Reports on one topic are read together. */
  readonly topic: string
  /** The process that reports: its next report takes the place of this one. */
  readonly member: string
  /** At most 65,536 characters; identities as digests. */
  readonly text: string
  /** Time (ms) that the report is kept without another one. */
  readonly ttlMs: number
}

/** The part of the keys of a policy that is to be forgotten. */
export interface ForgetOptions {
  /** The cursor of the last answer. @default the beginning */
  readonly cursor?: string | undefined
  /** Only counts the keys. @default false */
  readonly dryRun?: boolean | undefined
  /** The call that no keys are forgotten after. */
  readonly control?: ControlCall | undefined
}

/** A part of the keys of a policy that is forgotten. */
export interface Forgotten {
  readonly keys: number
  /** Left out when all keys have been looked at. */
  readonly cursor?: string | undefined
}

/** Denials of a store that answers later, which this process may repeat. */
export interface StoreDenials {
  /** Longest time (ms) that a denial is answered from memory, whatever other processes change. */
  readonly ttlMs: number
  /** The clock of a simulation, in ms. @default a clock that never steps */
  readonly clock?: (() => number) | undefined
}

/** The processes that use a store, as it sees them now. */
export interface StoreFleet {
  /** Their number, as last seen. Each enforces its share of the limits while the store is away. */
  readonly instances: number
  /** Ms by which the clock of the store is ahead of the one of this process. @default 0 */
  readonly clockSkewMs?: number
  /** Shows a report to the other processes, and returns theirs. */
  shareReport?(report: FleetReport): Promise<readonly string[]>
}

/** The keys that a store holds. A store leaves out what it cannot tell. */
export interface StoreKeys {
  /**
   * Returns the text that stands for a key in logs and metrics.
   * @default 128 bits of its SHA-256, as base64url
   */
  digestOf?(key: string): string
  /**
   * Finds the key of a digest. Returns the key, or the digest itself if the store finds a key by
   * its digest, or `undefined` if it holds nothing of it.
   */
  keyFor?(digest: string): MaybePromise<Pick<Check, 'key' | 'digest'> | undefined>
  /** Returns the limit of a key's last request. Left out by a store that keeps counts alone. */
  limitOf?(check: Pick<Check, 'policy' | 'key'>): number | undefined
  /** Forgets what all keys have taken of a policy, a bounded number of keys at a time. */
  forgetPolicy?(policy: Policy, options: ForgetOptions): MaybePromise<Forgotten>
}

/** News of a store. */
export interface StoreTelemetry {
  /** Last failure of the connection, unless the store answered since. Its message goes to logs. */
  readonly lastFailure?: Error | undefined
  /** Tells of each call to where the counts are, for a store that makes calls. */
  observeCalls?(observer: (call: StoreCall) => void): void
  /** Reports what the store notices by itself, such as clocks that differ. */
  observe?(observer: (event: ResilienceEvent) => void): void
  /** Tells when the connection to the counts is back, so that it is worth a probe. */
  observeReturn?(observer: () => void): void
}

/** Runs Lua scripts for data that others keep beside the counts. */
export interface StoreScripts {
  /** @param keys of one slot of a Cluster */
  run(
    text: string,
    keys: readonly string[],
    args: readonly string[],
    control?: ControlCall,
  ): Promise<unknown>
}

/** Returns whether a value has what every store must have. */
export function isStore(value: unknown): value is Store {
  if (typeof value !== 'object' || value === null) return false
  return ['apply', 'change'].every((call) => typeof Reflect.get(value, call) === 'function')
}

/** All that a backend must do. One call decides one request's checks in one atomic step. */
export interface Store {
  /**
   * The object that identifies where the store counts. Stores that count in one place, such as one
   * Redis under one prefix, share it, and so share names of policies.
   * @default the store itself
   */
  readonly space?: object
  /**
   * Outcomes stand in the order of the checks.
   * @throws or rejects with an error when the store could not decide; the limiter's failure mode
   * takes over
   */
  apply(
    op: DecidingOp,
    checks: readonly Check[],
    cancellation?: Cancellation,
  ): MaybePromise<readonly Outcome[]>
  /**
   * Changes what was taken before. Returns for each check whether the store found anything to
   * change. Examples: units that it gave back, a lease that still ran, a block that it replaced.
   * @throws or rejects with an error when the store failed
   */
  change(change: Change, cancellation?: Cancellation): MaybePromise<readonly boolean[]>
  /**
   * Settles the closed grants of each check's `terms`, and grants up to `cost` units. Only for
   * policies with `prefetchMs`. Left out by a store that does not count the units of processes.
   */
  grant?(checks: readonly GrantCheck[]): MaybePromise<readonly Granted[]>
  /**
   * Checks the policies of a limiter that is being made, and its deadline. Left out by a store that
   * takes all of them.
   * @throws SluiceError that names the policy and the fix
   */
  accept?(policies: readonly Policy[], deadlineMs: number): void
  /** The same without a promise, for stores that answer later: settles the ask, or fails it. */
  submit?(ask: Ask): void
  /** Name of the store in events and metrics: `memory`, `redis`. @default 'store' */
  readonly name?: string
  /** Denials that may be answered from memory. @default none: the store is asked every time */
  readonly denials?: StoreDenials
  /** The processes that use the store. Left out by a store of one process. */
  readonly fleet?: StoreFleet
  /** The keys that the store holds, by their digests and by policy. */
  readonly keys?: StoreKeys
  /** News of the store, for observers and error messages. */
  readonly telemetry?: StoreTelemetry
  /** Texts with versions that processes share, for a store that keeps some. @default none */
  readonly documents?: Documents
  /** Scripts beside the counts. Left out by a store that is not in Redis. */
  readonly scripts?: StoreScripts
  /** Region of a store that shares limits with other regions. Left out by all others. */
  readonly region?: StoreRegion
  /** Settles what is under way and stops timers. The clients that users passed in stay theirs. */
  close?(): Promise<void>
}
