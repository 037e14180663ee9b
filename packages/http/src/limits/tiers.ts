import { andThen, invalid, isOptions, type MaybePromise, quote } from '@sluice/core'
import type { HttpRequest } from '../request/exchange.ts'
import type { Report } from '../request/user-functions.ts'
import {
  declaredBy,
  finderOf,
  isLimitSource,
  isLimitValue,
  type LimitFinder,
  type LimitOption,
  type LimitSource,
  largestOf,
} from './source.ts'

/**
 * Limits by tier. List every tier: `default` is for clients without one, and each request with an
 * unknown one is reported to `onInvalid`.
 */
export interface TierTable<Native> {
  readonly [tier: string]: LimitOption<Native>
}

/** By function, the tier of each request: its policies that share the function call it once. */
const tiersBy = new WeakMap<object, WeakMap<HttpRequest, MaybePromise<unknown>>>()

/**
 * A limit for each tier of clients: whole numbers, `unlimited`, functions, `schedule(…)` or
 * `adaptive(…)`. A client that changes tier keeps its counts.
 * @example
 * const limit = tiers({ free: 100, paid: 10_000, default: 60 }, (req) => req.user?.plan)
 * rateLimit({ limit, window: '1m', key: user((req) => req.user?.id) })
 * @param tierOf returns the tier of a request, if any; policies that share it call it once
 * @throws SluiceError if an entry of the table is not a limit
 */
export function tiers<Native>(
  table: TierTable<NoInfer<Native>>,
  tierOf: (native: Native) => MaybePromise<string | null | undefined>,
): LimitSource<Native> {
  checkTable(table)
  if (typeof tierOf !== 'function') {
    throw invalid({ option: 'tiers(table, tierOf)' }, tierOf, 'a function of the request')
  }
  // A Map, so that only entries of the table are tiers, and 'toString' is not.
  const finders = new Map(Object.entries(table).map(([tier, limit]) => [tier, finderOf(limit)]))
  const otherwise = finders.get('default') ?? (() => 'default')
  const known = tiersBy.get(tierOf) ?? new WeakMap<HttpRequest, MaybePromise<unknown>>()
  tiersBy.set(tierOf, known)
  const names = quote(Object.keys(table).join(', ')).slice(1, -1)

  function finderFor(tier: unknown, report: Report): LimitFinder<Native> {
    if (tier === undefined || tier === null || tier === '') return otherwise
    const found = typeof tier === 'string' ? finders.get(tier) : undefined
    if (found) return found
    report(
      'SLUICE_TIER_UNKNOWN',
      `tiers of ${names}`,
      `there is no tier ${quote(tier)}; the default was used. Add it to the table, or return an existing tier`,
    )
    return otherwise
  }

  return {
    kind: 'tiers(…)',
    declared: declaredBy(Object.hasOwn(table, 'default') ? table.default : undefined),
    largest: largestOf(Object.values(table)),
    find(native, report, request) {
      if (!known.has(request)) known.set(request, tierOf(native))
      return andThen(known.get(request), (tier) => finderFor(tier, report)(native, report, request))
    },
  }
}

function checkTable(table: unknown): void {
  if (!isOptions(table) || isLimitSource(table) || Object.keys(table).length === 0) {
    throw invalid({ option: 'tiers(table)' }, table, 'a plain object of limits by tier')
  }
  for (const [tier, limit] of Object.entries(table)) {
    if (isLimitValue(limit) || typeof limit === 'function' || isLimitSource(limit)) continue
    const legal =
      'a whole number ≥ 0, unlimited, a function of the request, schedule(…) or adaptive(…)'
    throw invalid({ option: `tiers.${tier}`, code: 'SLUICE_LIMIT_INVALID' }, limit, legal)
  }
}
