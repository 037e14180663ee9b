import type { MaybePromise } from '../runtime/maybe-promise.ts'
import type { ControlCall } from '../waiting/control-call.ts'
import type { BlockCheck, Check, GrantCheck, Held, HeldOp, Receipt, ResetCheck } from './check.ts'
import type { Documents } from './documents.ts'
import type { Policy } from './policy.ts'
import type { StoreRegion } from './region.ts'
import type { ResilienceEvent } from './resilience-event.ts'

/**
 * - `consume`: takes the units of every check, or none if one denies; then only `countDenied`
 *   policies are charged. A penalty takes nothing for an allowed request, and a strike for a
 *   request that other policies deny
 * - `peek`: answers like `consume`, without changing anything
 * - `charge`: takes the units unconditionally
 */
export type DecidingOp = 'consume' | 'peek' | 'charge'

/**
 * - `refund`: gives back up to `cost` units of the receipts, as far as they still count
 * - `release`: ends the leases that the receipts hold, as far as they still run
 * - `renew`: renews those leases
 * - `reset`: resets the keys
 * - `block`: makes a penalty deny its keys for `blockMs`, replacing earlier blocks
 */
export type Change = { readonly op: HeldOp; readonly checks: readonly Held[] } | ManualChange

/** A manual change. */
export type ManualChange =
  | { readonly op: 'reset'; readonly checks: readonly ResetCheck[] }
  | { readonly op: 'block'; readonly checks: readonly BlockCheck[] }

/** An operation of a store. */
export type StoreOp = DecidingOp | Change['op']

/** The outcome of one check. All times are whole milliseconds. */
export interface Outcome {
  readonly policy: Policy
  /** True if this policy lets the request pass, before it counts a denial. */
  readonly allowed: boolean
  /** The limit that was applied; `Infinity` if the policy is unlimited. */
  readonly limit: number
  /** Units left: whole, never negative, never above the limit; `undefined` if unknown. */
  readonly remaining: number | undefined
  /** The effective window of the remaining units; `undefined` if the policy has none. */
  readonly resetMs: number | undefined
  /**
   * The wait for a client that is alone on its key; `Infinity` if waiting cannot help. 0 if
   * allowed, unless the policy has counted a denial (`countDenied`) and is full now.
   */
  readonly retryAfterMs: number
  /** Time (ms) to hold the request; above 0 only if allowed by a `leaky-bucket`. */
  readonly delayMs: number
  /** Opaque: the units that a refund gives back. `undefined` if nothing was taken. */
  readonly receipt: Receipt | undefined
}

/** The answer to one `GrantCheck`. */
export interface Granted {
  /** The units that the process may spend without store calls; 0 for none. */
  readonly units: number
  /** The units of the key that are left besides all grants, and its effective window (ms). */
  readonly remaining: number | undefined
  readonly resetMs: number | undefined
  /** The receipt for the spent units of the closed grants; `undefined` for none. */
  readonly settled: Receipt | undefined
}

/** A cancellation flag: checks that no request is waiting for need not be sent. */
export interface Cancellation {
  readonly isUnwanted: boolean
  /** For a change that must not be made after its deadline: `reset` and `block`. */
  readonly control?: ControlCall | undefined
}

/** One request's checks in the queue of an asynchronous store. */
export interface Ask extends Cancellation {
  readonly op: DecidingOp
  /** A store that cannot hold a limit replaces them with checks of a smaller one. */
  checks: readonly Check[]
  /** For the store: its names for the keys of the checks. Empty until the store sets them. */
  keys: readonly string[]
  /**
   * Outcomes are in the order of the checks. Call this or `fail` once; synchronously, if no call is
   * needed.
   */
  settle(outcomes: readonly Outcome[]): void
  fail(error: unknown): void
}

/** One call from a store to its backend. */
export interface StoreCall {
  /** Number of requests in the call. */
  readonly requests: number
  /** Number of checks in all of them. */
  readonly checks: number
  /** Milliseconds since 1970. */
  readonly startedAt: number
  readonly durationMs: number
  readonly failed: boolean
}

/** A small report from one process, for the rest of its fleet. */
export interface FleetReport {
  /** Reports on one topic are read together. */
  readonly topic: string
  /** The reporting process: its next report replaces this one. */
  readonly member: string
  /** At most 65,536 characters; identities as digests. */
  readonly text: string
  /** Time (ms) for which the report is kept unless replaced. */
  readonly ttlMs: number
}

/** The part of a policy's keys to reset. */
export interface ForgetOptions {
  /** The cursor from the last answer. @default the start */
  readonly cursor?: string | undefined
  /** Only counts the keys. @default false */
  readonly dryRun?: boolean | undefined
  /** A call after which no more keys are reset. */
  readonly control?: ControlCall | undefined
}

/** The result of resetting a part of a policy's keys. */
export interface Forgotten {
  readonly keys: number
  /** Omitted once all keys have been scanned. */
  readonly cursor?: string | undefined
}

/** Denials of an asynchronous store that this process may cache. */
export interface StoreDenials {
  /** Maximum time (ms) for which a denial is cached, whatever other processes change. */
  readonly ttlMs: number
  /** The clock of a simulation, in ms. @default a clock that never steps */
  readonly clock?: (() => number) | undefined
}

/** The processes that use a store, as it sees them. */
export interface StoreFleet {
  /** Their number, as last seen. In a store outage, each enforces its share of the limits. */
  readonly instances: number
  /** Ms by which the store's clock is ahead of this process's clock. @default 0 */
  readonly clockSkewMs?: number
  /** Publishes a report to the other processes, and returns theirs. */
  shareReport?(report: FleetReport): Promise<readonly string[]>
}

/** The keys that a store holds. A store omits what it does not support. */
export interface StoreKeys {
  /**
   * Returns the digest that identifies a key in logs and metrics.
   * @default 128 bits of its SHA-256, as base64url
   */
  digestOf?(key: string): string
  /**
   * Finds the key of a digest. Returns the key, or the digest itself if the store finds keys by
   * digest, or `undefined` if it does not have the key.
   */
  keyFor?(digest: string): MaybePromise<Pick<Check, 'key' | 'digest'> | undefined>
  /** Returns the limit of a key's last request. Omitted by a store that keeps only counts. */
  limitOf?(check: Pick<Check, 'policy' | 'key'>): number | undefined
  /** Resets the counts of all keys of a policy, a bounded number of keys at a time. */
  forgetPolicy?(policy: Policy, options: ForgetOptions): MaybePromise<Forgotten>
}

/** News of a store. */
export interface StoreTelemetry {
  /** Last failure of the connection, unless the store has answered since. Its message is logged. */
  readonly lastFailure?: Error | undefined
  /** Reports each call to the backend, for a store that makes calls. */
  observeCalls?(observer: (call: StoreCall) => void): void
  /** Reports what the store notices on its own, such as clock skew. */
  observe?(observer: (event: ResilienceEvent) => void): void
  /** Reports a restored connection, after which a probe is worthwhile. */
  observeReturn?(observer: () => void): void
}

/** Runs Lua scripts for other data stored next to the counts. */
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

/** The interface of a backend. One call decides one request's checks in one atomic step. */
export interface Store {
  /**
   * The object that identifies where the store counts. Stores that count in the same place, such as
   * one Redis with one prefix, share it, and therefore share policy names.
   * @default the store itself
   */
  readonly space?: object
  /**
   * Outcomes are in the order of the checks.
   * @throws or rejects with an error if the store fails; the limiter's failure mode then takes over
   */
  apply(
    op: DecidingOp,
    checks: readonly Check[],
    cancellation?: Cancellation,
  ): MaybePromise<readonly Outcome[]>
  /**
   * Changes what was taken before. Returns for each check whether there was anything to change.
   * Examples: units given back, a lease that still ran, a block that was replaced.
   * @throws or rejects with an error if the store fails
   */
  change(change: Change, cancellation?: Cancellation): MaybePromise<readonly boolean[]>
  /**
   * Settles the closed grants of each check's `terms`, and grants up to `cost` units. Only for
   * policies with `prefetchMs`. Omitted by a store without grants.
   */
  grant?(checks: readonly GrantCheck[]): MaybePromise<readonly Granted[]>
  /**
   * Checks the policies and the deadline of a new limiter. Omitted by a store that supports all of
   * them.
   * @throws SluiceError that names the policy and the fix
   */
  accept?(policies: readonly Policy[], deadlineMs: number): void
  /** The same without a promise, for asynchronous stores: settles the ask, or fails it. */
  submit?(ask: Ask): void
  /** Name of the store in events and metrics: `memory`, `redis`. @default 'store' */
  readonly name?: string
  /** Denials that may be cached. @default none: the store is called every time */
  readonly denials?: StoreDenials
  /** The processes that use the store. Omitted by a store of one process. */
  readonly fleet?: StoreFleet
  /** The keys that the store holds, by digest and by policy. */
  readonly keys?: StoreKeys
  /** News of the store, for observers and error messages. */
  readonly telemetry?: StoreTelemetry
  /** Versioned documents that processes share, if the store keeps them. @default none */
  readonly documents?: Documents
  /** Scripts next to the counts. Omitted by a store that is not in Redis. */
  readonly scripts?: StoreScripts
  /** Region of a store that shares limits with other regions. Omitted by all others. */
  readonly region?: StoreRegion
  /** Settles pending work and stops timers. Users own the clients that they passed in. */
  close?(): Promise<void>
}
