import { checkUnits } from '../algorithms/max-units.ts'
import { type BlockCheck, type Check, maxKeyLength } from '../model/check.ts'
import type { Policy } from '../model/policy.ts'
import type { Store } from '../model/store.ts'
import { type Duration, windowMsOf } from '../options/duration.ts'
import { SluiceError } from '../options/errors.ts'
import { invalid, knownFields, wholeNumber } from '../options/options.ts'
import { policyLimit, type unlimited, withoutHeadroom } from '../policy/policy.ts'
import type { MaybePromise } from '../runtime/maybe-promise.ts'

/** Options of `consume` and `charge`. */
export interface CostOptions {
  /** Number of units: a whole number ≥ 0. @default 1 */
  cost?: number | undefined
}

/** Options of `reserve`. `cost` applies to policies without `reserve`. */
export interface ReserveOptions extends CostOptions {
  /** Units that are held of each policy with `reserve`: a whole number ≥ 1. */
  units: number
  /**
   * Units that a reservation asks for when it has fewer than half of them left; 0: it never asks.
   * @default a quarter of `units`, rounded up
   */
  step?: number | undefined
}

/** Options of `peek`. */
export interface PeekOptions extends CostOptions {
  /**
   * Limits by policy name, for limits that depend on the request: whole numbers ≥ 0, or
   * `unlimited`. @default the policy's limit; if it depends on the request, the limit of the last
   * request for the key
   */
  limits?: Readonly<Record<string, number | typeof unlimited>>
}

/** A check to peek at. Without a limit, the limit of the key's last request applies. */
export type Look = Omit<Check, 'limit'> & { readonly limit: number | undefined }

/** Reads the options of `peek`. `lookOf` adds the limit, without its headroom. */
export function readPeekOptions(
  options: PeekOptions,
  policies: readonly Policy[],
): Pick<PeekOptions, 'cost'> & { lookOf(check: Check): Look } {
  knownFields(options, 'options', ['cost', 'limits'])
  const { cost, limits = {} } = options
  const names = policies.map(({ name }) => name)
  knownFields(limits, 'limits', names)
  function limitOf(policy: Policy): number | undefined {
    const { name, headroom, limit, limitPerRequest } = policy
    const value = Object.hasOwn(limits, name) ? limits[name] : undefined
    if (value === undefined) return limitPerRequest ? undefined : limit
    const given = withoutHeadroom(policyLimit(value, `limits.${name}`), headroom)
    checkUnits(given, policy, `limits.${name}`)
    return given
  }
  return {
    cost,
    lookOf(check) {
      const look = { ...check, limit: limitOf(check.policy) }
      // Nobody knows whether the key of a digest is in the enforced share, so any share counts.
      return check.digest === undefined
        ? look
        : { ...look, shadow: check.policy.enforcedShare === 0 }
    },
  }
}

/**
 * A key, or its digest. Logs, top keys and Redis show digests instead of keys, so actions do not
 * require an identity.
 */
export type KeyOrDigest = string | { readonly digest: string }

export type Keyed = Pick<Check, 'key' | 'digest'>

/** Finds the key of an action; `undefined` if the store does not have the digest. */
export function keyedBy(key: KeyOrDigest, store: Store): MaybePromise<Keyed | undefined> {
  if (typeof key !== 'object' || key === null) return { key: checkedKey(key) }
  knownFields(key, 'the key', ['digest'])
  const { digest } = key
  if (typeof digest !== 'string' || !/^[\w-]{22}$/.test(digest)) {
    const label = { option: 'digest', code: 'SLUICE_KEY_INVALID' } as const
    throw invalid(label, digest, 'the 22 characters of a digest, as in topKeys and onDecision')
  }
  if (store.keys?.keyFor) return store.keys.keyFor(digest)
  throw new SluiceError(
    'SLUICE_KEY_INVALID',
    'this store cannot find keys by digest (nor can redisStore with digest: false); give the key itself',
  )
}

const legal = `a non-empty string of at most ${maxKeyLength} characters`

export function checkedKey(key: unknown): string {
  if (typeof key !== 'string' || key === '') {
    throw invalid({ option: 'key', code: 'SLUICE_KEY_INVALID' }, key, legal)
  }
  if (key.length <= maxKeyLength) return key
  throw new SluiceError(
    'SLUICE_KEY_INVALID',
    `key must be ${legal}, but has ${key.length}; give a digest of it instead`,
  )
}

export function checksOf(
  policies: readonly Policy[],
  keyed: Keyed,
  costs?: CostOptions,
): readonly Check[] {
  const cost = costs === undefined ? 1 : costOf(costs)
  const only = policies[0]
  if (only && policies.length === 1) return [checkOf(only, keyed, cost)]
  return policies.map((policy) => checkOf(policy, keyed, cost))
}

export function checkOf(policy: Policy, { key, digest }: Keyed, cost: number): Check {
  if (digest === undefined) return { policy, key, cost, limit: policy.limit }
  return { policy, key, digest, cost, limit: policy.limit }
}

/** @throws SluiceError if there is no penalty */
export function somePenalty(penalty: Policy | undefined): Policy {
  if (penalty) return penalty
  throw new SluiceError(
    'SLUICE_PENALTY_MISSING',
    `this limiter has no penalty, so it cannot block keys; set penalty: { after: 'never' } for manual blocks only, or ` +
      `penalty: { after: 10, within: '1m', for: '5m' }`,
  )
}

/** @throws SluiceError if there is no penalty, or the duration or the key is invalid */
export function blockOf(
  penalty: Policy | undefined,
  keyed: Keyed | undefined,
  duration: Duration,
): BlockCheck {
  const policy = somePenalty(penalty)
  const blockMs = windowMsOf(duration, 'for')
  if (keyed) return { policy, ...keyed, limit: policy.limit, blockMs }
  throw new SluiceError(
    'SLUICE_KEY_INVALID',
    'the store holds no key with this digest, so it cannot block the key; give the key itself',
  )
}

function costOf(options: CostOptions): number {
  knownFields(options, 'options', ['cost'])
  const { cost = 1 } = options
  return wholeNumber(cost, { option: 'cost', code: 'SLUICE_COST_INVALID' }, { min: 0 })
}

export function readReserveOptions(
  options: ReserveOptions,
  policies: readonly Policy[],
): { readonly units: number; readonly step: number; readonly cost: number } {
  knownFields(options, 'options', ['units', 'step', 'cost'])
  const place = (option: string) => ({ option, code: 'SLUICE_COST_INVALID' }) as const
  const units = wholeNumber(options.units, place('units'), { min: 1 })
  const step = wholeNumber(options.step ?? Math.ceil(units / 4), place('step'), { min: 0 })
  if (policies.some(({ reserveMs }) => reserveMs > 0)) {
    return { units, step, cost: costOf({ cost: options.cost }) }
  }
  throw new SluiceError(
    'SLUICE_OPTION_INVALID',
    'reserve: no policy of the limiter has reserve: true; set it on a policy with the algorithm sliding-log or fixed-window',
  )
}
