import { isLimited } from '../deciders/set-apart.ts'
import type { Check } from '../model/check.ts'
import type { Policy } from '../model/policy.ts'
import type { Store } from '../model/store.ts'
import { windowMsOf } from '../options/duration.ts'
import { andThen, type MaybePromise, promised } from '../runtime/maybe-promise.ts'
import {
  checkOf,
  digestUnknown,
  type Keyed,
  type KeyOrDigest,
  keyedBy,
  penaltyMissing,
  storeError,
} from './arguments.ts'
import type { Limiter } from './limiter.ts'

interface KeyChangesOptions {
  readonly store: Store
  readonly penalty: Policy | undefined
  checksOf(keyed: Keyed): readonly Check[]
  /** @returns whether the store found anything to change */
  overwrite(op: 'reset' | 'block', checks: readonly Check[]): Promise<boolean>
}

/** Returns the resets and blocks of one limiter. */
export function keyChanges({
  store,
  penalty,
  checksOf,
  overwrite,
}: KeyChangesOptions): Pick<
  Limiter,
  'reset' | 'resetChecks' | 'block' | 'blockChecks' | 'unblock'
> {
  async function change(op: 'reset' | 'block', checks: readonly Check[]): Promise<boolean> {
    try {
      return checks.length > 0 && (await overwrite(op, checks))
    } catch (error) {
      throw storeError(error)
    }
  }

  function resetChecks(checks: readonly Check[]): Promise<boolean> {
    return change('reset', checks.filter(isLimited))
  }

  /** Acts on a key at once if the store can, so that it decides later calls after this one. */
  function actOn(
    key: KeyOrDigest,
    act: (keyed: Keyed | undefined) => MaybePromise<boolean>,
  ): Promise<boolean> {
    return promised(() => andThen(keyedBy(key, store), act))
  }

  return {
    resetChecks,
    blockChecks: (checks) => change('block', checks),
    reset: (key) => actOn(key, (keyed) => (keyed ? resetChecks(checksOf(keyed)) : false)),
    block: (key, duration) =>
      actOn(key, (keyed) => {
        if (!penalty) throw penaltyMissing()
        const blockMs = windowMsOf(duration, 'for')
        if (!keyed) throw digestUnknown()
        return change('block', [checkOf(penalty, keyed, blockMs)])
      }),
    unblock: (key) =>
      actOn(key, (keyed) => {
        if (!penalty) throw penaltyMissing()
        return keyed ? change('reset', [checkOf(penalty, keyed, 1)]) : false
      }),
  }
}
