import { SluiceError } from '../options/errors.ts'
import { invalid, knownFields, oneOf, orDefault } from '../options/options.ts'

/** The mode of a policy: it refuses, or it only reports what it would have refused. */
export type PolicyMode = 'enforce' | 'shadow'

/** The share of keys that a policy is enforced for, while it is tried out. */
export interface EnforcedShare {
  /** Share of the keys, 0 to 1. A higher share only adds keys. */
  share: number
}

interface EnforcementOptions {
  mode?: PolicyMode | undefined
  enforce?: EnforcedShare | undefined
}

/**
 * Returns the share of keys that a policy is enforced for: all, none in shadow, or the option's.
 * @throws SluiceError when both are given, or one is out of range
 */
export function enforcedShare(
  { mode, enforce }: EnforcementOptions,
  at: (field: string) => string,
): number {
  const chosen = oneOf(orDefault(mode, 'enforce'), { option: at('mode') }, ['enforce', 'shadow'])
  if (enforce === undefined) return chosen === 'shadow' ? 0 : 1
  if (chosen === 'shadow') {
    throw new SluiceError(
      'SLUICE_OPTION_INVALID',
      `${at('enforce')} stands beside mode 'shadow', which enforces nothing: leave one of them out`,
    )
  }
  knownFields(enforce, at('enforce'), ['share'])
  const { share } = enforce
  if (typeof share === 'number' && share >= 0 && share <= 1) return share
  throw invalid(
    { option: at('enforce.share') },
    share,
    'a number from 0 (for no key) to 1 (for all)',
  )
}
