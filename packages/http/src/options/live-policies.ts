import type { CheckLimiter, Without } from '@sluice/core'
import type { KeyResolver } from '../keys/resolver.ts'
import type { LimitSource } from '../limits/source.ts'
import type { FixedGuardOptions, GuardFields, NoPolicies, PolicyGuardOptions } from './options.ts'

/** Code that a policy file refers to by name: the file contains only data. */
export interface NamedCode<Native> {
  /**
   * Key resolvers by the names that policies use: `{ tenant: tenant((req) => req.tenant?.id) }`.
   * @default none: only `ip` and `route`
   */
  keys?: Readonly<Record<string, KeyResolver<Native>>> | undefined
  /**
   * Self-adjusting limits and functions of the request, by the names that policies use: `{ plan:
   * (req) => req.user?.plan }`. @default none
   */
  values?: Readonly<Record<string, NamedValue<Native>>> | undefined
}

/** A function of the framework's request and, after the response, of the response. */
// biome-ignore lint/suspicious/noExplicitAny: what it yields is checked where it is used
export type NamedValue<Native> = ((native: Native, ...rest: any[]) => unknown) | LimitSource<Native>

/** One immutable set of policies. */
export interface PolicyVersion {
  /** Identifies the version, in every process. */
  readonly id: string
  /** 'off': every request passes uncounted. */
  readonly kill: 'none' | 'shadow' | 'off'
  /**
   * The guard options of this version.
   * @throws SluiceError if it names something that the code does not provide
   */
  optionsFor<Native, Handler>(code: NamedCode<Native>): GuardFields<Native, Handler>
  /** Runs a function whose policies then belong to this version. */
  collect<T>(make: () => T): T
}

/** A guard that changes with its policies. */
export interface LiveGuard {
  /** The code that the policies refer to. */
  readonly code: NamedCode<never>
  /** The limiter of the current version. */
  readonly limiter: CheckLimiter
  /**
   * Prepares the guard for a version, without changing anything yet.
   * @returns a function that applies the version
   * @throws SluiceError if no guard can be created from it
   */
  prepare(version: PolicyVersion): () => void
}

/** Policies that change at run time: the result of `openPolicies` of `@sluice/policies`. */
export interface LivePolicies {
  /**
   * Registers a guard, and applies the current version to it at once.
   * @throws SluiceError if no guard can be created from that version
   */
  attach(guard: LiveGuard): void
}

/** All option fields of a guard whose policies change while the application runs. */
export type LiveGuardFields<Native, Handler = never> = Omit<
  PolicyGuardOptions<Native, Handler>,
  keyof NoPolicies
> &
  NamedCode<Native> & {
    /** The policies: the result of `openPolicies` of `@sluice/policies`. */
    policies: LivePolicies
  }

/**
 * The options of a guard: settings and policies. The policies apply to all requests, to some
 * (`routes`), or change while the application runs. With a penalty they may be omitted.
 */
export type GuardOptions<Native, Handler = never> =
  | (FixedGuardOptions<Native, Handler> & Without<keyof NamedCode<Native>>)
  | (LiveGuardFields<Native, Handler> &
      Without<Exclude<keyof NoPolicies, 'policies'> | 'routes' | 'profiles'>)
