import { type Check, maxKeyLength } from '../check.ts'
import { SluiceError } from '../options/errors.ts'
import { invalid, knownFields, wholeNumber } from '../options/options.ts'
import type { Policy } from '../policy/policy.ts'

export interface CostOptions {
  /** Units that are asked for: a whole number ≥ 0. @default 1 */
  cost?: number
}

/**
 * Makes a check of each policy for one key.
 * @throws SluiceError when the key or the cost is out of range
 */
export function checksOf(
  policies: readonly Policy[],
  key: string,
  costs?: CostOptions,
): readonly Check[] {
  checkKey(key)
  const cost = costs === undefined ? 1 : costOf(costs)
  const [only] = policies
  if (only && policies.length === 1) return [checkOf(only, key, cost)]
  return policies.map((policy) => checkOf(policy, key, cost))
}

/** Makes a check at the limit of its policy. */
export function checkOf(policy: Policy, key: string, cost: number): Check {
  return { policy, key, cost, limit: policy.limit }
}

function costOf(options: CostOptions): number {
  knownFields(options, 'options', ['cost'])
  const { cost = 1 } = options
  return wholeNumber(cost, { option: 'cost', code: 'SLUICE_COST_INVALID' }, { min: 0 })
}

/** @throws SluiceError when it is no key */
export function checkKey(key: unknown): void {
  const isText = typeof key === 'string'
  if (isText && key !== '' && key.length <= maxKeyLength) return
  const legal = `a non-empty string of at most ${maxKeyLength} characters`
  if (!isText || key === '') {
    throw invalid({ option: 'key', code: 'SLUICE_KEY_INVALID' }, key, legal)
  }
  throw new SluiceError(
    'SLUICE_KEY_INVALID',
    `key must be ${legal}, but has ${key.length}; give a digest of it instead`,
  )
}
