import type { ScheduleRule } from '@sluice/http'

// Types of the files that the schema accepts, as far as other modules read them.

/** A policy in a file. The schema defines its fields. */
export interface PolicyEntry {
  readonly name: string
  readonly limit: LimitEntry
  readonly key?: KeyEntry
  readonly mode?: 'enforce' | 'shadow'
  readonly enforce?: { readonly share: number } | Named
  readonly [field: string]: unknown
}

/** The name of a function defined in code. */
interface Named {
  readonly by: string
}

/** The name of a key, or several names. */
export type KeyEntry =
  | string
  | { readonly all: readonly string[] }
  | { readonly firstOf: readonly string[] }

export type FixedLimit = number | 'unlimited'

export interface ScheduleEntry {
  readonly schedule: {
    readonly timeZone: string
    readonly default: FixedLimit
    readonly rules: readonly (Omit<ScheduleRule, 'limit'> & { readonly limit: FixedLimit })[]
  }
}

interface TieredEntry extends Named {
  readonly tiers: Readonly<Record<string, FixedLimit | ScheduleEntry>>
  readonly default: FixedLimit
}

export type LimitEntry =
  | FixedLimit
  | TieredEntry
  | ScheduleEntry
  | (Named & { readonly default: number })

/** A different limit or mode for single identities. */
export interface OverrideEntry {
  readonly policy: string
  /** Values, or patterns with `*`, by key name. */
  readonly key: Readonly<Record<string, string | number>>
  readonly limit?: FixedLimit
  readonly mode?: 'enforce' | 'shadow'
  /** Time at which it expires, with its zone. */
  readonly until?: string
  readonly reason?: string
}

interface Settings {
  readonly key?: KeyEntry
  readonly penalty?: { readonly name?: string; readonly key?: KeyEntry } | false
  readonly [field: string]: unknown
}

interface RouteEntry extends Settings {
  readonly policies?: readonly (PolicyEntry | string)[]
}

/** A policy file accepted by the schema. */
export interface PolicyFile extends Settings {
  readonly policies?: readonly PolicyEntry[]
  readonly profiles?: Readonly<
    Record<string, Omit<PolicyEntry, 'name'> & { readonly limit: LimitEntry }>
  >
  readonly routes?: Readonly<Record<string, RouteEntry | string | false>>
  readonly overrides?: readonly OverrideEntry[]
}

/** The fields that may change while the application runs. */
export type EntryField = 'limit' | 'burst' | 'mode' | 'share' | 'override'
