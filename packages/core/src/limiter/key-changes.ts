import { type Check, isLimited } from '../model/check.ts'
import type { Policy } from '../model/policy.ts'
import type { ManualChange, Store } from '../model/store.ts'
import { windowMsOf } from '../options/duration.ts'
import { SluiceError } from '../options/errors.ts'
import { storeError } from '../resilience/store-monitor.ts'
import { andThen, promised } from '../runtime/maybe-promise.ts'
import { checkOf, type Keyed, type KeyOrDigest, keyedBy } from './arguments.ts'
import type { CheckLimiter } from './limiter.ts'

interface KeyChangesOptions {
  readonly store: Store
  readonly penalty: Policy | undefined
  checksOf(keyed: Keyed): readonly Check[]
  overwrite(change: ManualChange): Promise<readonly boolean[]>
}

/** Returns the resets and blocks of one limiter. */
export function keyChanges({
  store,
  penalty,
  checksOf,
  overwrite,
}: KeyChangesOptions): Pick<
  CheckLimiter,
  'reset' | 'resetChecks' | 'block' | 'blockChecks' | 'unblock'
> {
  async function make(change: ManualChange): Promise<boolean> {
    try {
      return change.checks.length > 0 && (await overwrite(change)).includes(true)
    } catch (error) {
      throw storeError(error)
    }
  }

  const resetChecks = (checks: readonly Check[]) =>
    make({ op: 'reset', checks: checks.filter(isLimited) })

  /** Acts on a key at once if the store can, so that it decides later calls after this one. */
  function actOn(
    key: KeyOrDigest,
    act: (keyed: Keyed | undefined) => Promise<boolean> | false,
  ): Promise<boolean> {
    return promised(() => andThen(keyedBy(key, store), act))
  }

  function somePenalty(): Policy {
    if (penalty) return penalty
    throw new SluiceError(
      'SLUICE_PENALTY_MISSING',
      `this limiter has no penalty, so none of its requests asks for blocks; set penalty: { after: 'never' } for blocks by hand alone, or ` +
        `penalty: { after: 10, within: '1m', for: '5m' }`,
    )
  }

  return {
    resetChecks,
    blockChecks: (checks) => make({ op: 'block', checks }),
    reset: (key) => actOn(key, (keyed) => keyed !== undefined && resetChecks(checksOf(keyed))),
    block: (key, duration) =>
      actOn(key, (keyed) => {
        const policy = somePenalty()
        const blockMs = windowMsOf(duration, 'for')
        const { limit } = policy
        if (keyed) return make({ op: 'block', checks: [{ policy, ...keyed, limit, blockMs }] })
        throw new SluiceError(
          'SLUICE_KEY_INVALID',
          'the store holds no key with this digest, so it cannot block the key; give the key itself',
        )
      }),
    unblock: (key) =>
      actOn(key, (keyed) => {
        const policy = somePenalty()
        if (!keyed) return false
        return make({ op: 'reset', checks: [checkOf(policy, keyed, 1)] })
      }),
  }
}
