import { checkUnits } from '../algorithms/max-units.ts'
import type { Policy } from '../model/policy.ts'
import { knownFields } from '../options/options.ts'
import { withoutHeadroom } from '../policy/headroom.ts'
import { policyLimit, type unlimited } from '../policy/policy.ts'
import type { CostOptions } from './arguments.ts'

/** Options of `peek`. */
export interface PeekOptions extends CostOptions {
  /**
   * Limits by the names of policies, for limits that depend on the request: whole numbers ≥ 0, or
   * `unlimited`.
   * @default the limit of the policy; if it depends on the request, that of the key's last request
   */
  limits?: Readonly<Record<string, number | typeof unlimited>>
}

/**
 * Reads the options of `peek`. `limitOf` returns the limit to look under, without its headroom.
 * @throws SluiceError that names the option, its value, the legal range and the fix
 */
export function readPeekOptions(
  options: PeekOptions,
  policies: readonly Policy[],
): Pick<PeekOptions, 'cost'> & { limitOf(policy: Policy): number | undefined } {
  knownFields(options, 'options', ['cost', 'limits'])
  const { cost, limits = {} } = options
  const names = policies.map(({ name }) => name)
  knownFields(limits, 'limits', names)
  return {
    cost,
    limitOf({ name, windowMs, headroom, limit, limitPerRequest }: Policy): number | undefined {
      const value = limits[name]
      if (value === undefined) return limitPerRequest ? undefined : limit
      const given = withoutHeadroom(policyLimit(value, `limits.${name}`), headroom)
      checkUnits(given, windowMs, `limits.${name}`)
      return given
    },
  }
}
