import type { Check } from './check.ts'
import { SluiceError } from './errors.ts'
import { placeOf } from './fnv1a.ts'
import { given, invalid, knownFields, oneOf } from './options.ts'
import type { Policy } from './policy.ts'

/** Whether a policy refuses, or only tells what it would have refused. */
export type PolicyMode = 'enforce' | 'shadow'

/** For whom a policy is enforced, while it is tried out. */
export interface EnforcedShare {
  /** Of the keys, 0 to 1. Raising it only ever adds keys. */
  share: number
}

interface EnforcementOptions {
  mode?: PolicyMode
  enforce?: EnforcedShare
}

/**
 * The share of keys that a policy is enforced for: all, none in shadow, or what is chosen.
 * @throws SluiceError when both are given, or one is out of range
 */
export function enforcedShare(
  { mode, enforce }: EnforcementOptions,
  at: (field: string) => string,
): number {
  const chosen = oneOf(given(mode, 'enforce'), { option: at('mode') }, ['enforce', 'shadow'])
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

/** Whether a check is only evaluated: as the check says itself, or by the place of its key, which is another for each policy. */
function isInShadow({ policy, key, shadow }: Check): boolean {
  return shadow ?? isKeyInShadow(policy, key)
}

function isKeyInShadow({ id, enforcedShare: share }: Policy, key: string): boolean {
  if (share === 1) return false
  return share === 0 || placeOf(`${id} ${key}`) >= share
}

/** The checks of a request by what they are for. */
export interface DividedChecks<C extends Check> {
  readonly enforced: readonly C[]
  readonly shadows: readonly C[]
}

const none: readonly never[] = []

/** Nearly always all are enforced: then nothing is computed. */
export function divideChecks<C extends Check>(checks: readonly C[]): DividedChecks<C> {
  if (!checks.some(isOnTrial)) return { enforced: checks, shadows: none }
  const enforced: C[] = []
  const shadows: C[] = []
  for (const check of checks) {
    if (isInShadow(check)) shadows.push(check)
    else enforced.push(check)
  }
  return { enforced, shadows }
}

function isOnTrial({ policy, shadow }: Check): boolean {
  return shadow === true || policy.enforcedShare < 1
}
