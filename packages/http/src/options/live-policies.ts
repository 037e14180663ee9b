import type { CheckLimiter, Without } from '@sluice/core'
import type { KeyResolver } from '../keys/resolver.ts'
import type { LimitSource } from '../limits/source.ts'
import type { FixedGuardOptions, GuardFields, NoPolicies, PolicyGuardOptions } from './options.ts'

/** Code that a policy file names: a file holds data alone. */
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

/** One set of policies, which never changes. */
export interface PolicyVersion {
  /** Tells one version from others, in every process. */
  readonly id: string
  /** 'off': every request passes uncounted. */
  readonly kill: 'none' | 'shadow' | 'off'
  /**
   * The options of a guard that this version stands for.
   * @throws SluiceError when it names what the code does not give
   */
  optionsFor<Native, Handler>(code: NamedCode<Native>): GuardFields<Native, Handler>
  /** Makes something whose policies belong to this version. */
  collect<T>(make: () => T): T
}

/** A guard that changes with its policies. */
export interface LiveGuard {
  /** The code that the policies name. */
  readonly code: NamedCode<never>
  /** The limiter of the version in force. */
  readonly limiter: CheckLimiter
  /**
   * Makes what the guard needs for a version, and changes nothing yet.
   * @returns what puts the version in force
   * @throws SluiceError when the guard cannot be made of it
   */
  prepare(version: PolicyVersion): () => void
}

/** Policies that change at run time: the result of `openPolicies` of `@sluice/policies`. */
export interface LivePolicies {
  /**
   * Registers a guard, and puts the version in force into it at once.
   * @throws SluiceError when the guard cannot be made of that version
   */
  attach(guard: LiveGuard): void
}

/** All fields of a guard's options whose policies change while the application runs. */
export type LiveGuardFields<Native, Handler = never> = Omit<
  PolicyGuardOptions<Native, Handler>,
  keyof NoPolicies
> &
  NamedCode<Native> & {
    /** The policies: the result of `openPolicies` of `@sluice/policies`. */
    policies: LivePolicies
  }

/**
 * The options of a guard: settings, and policies. The policies are for all requests, for some
 * (`routes`), or change while the application runs. Beside a penalty there may be none.
 */
export type GuardOptions<Native, Handler = never> =
  | (FixedGuardOptions<Native, Handler> & Without<keyof NamedCode<Native>>)
  | (LiveGuardFields<Native, Handler> &
      Without<Exclude<keyof NoPolicies, 'policies'> | 'routes' | 'profiles'>)
