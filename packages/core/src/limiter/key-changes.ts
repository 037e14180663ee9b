import { isLimited } from '../deciders/set-apart.ts'
import type { Check } from '../model/check.ts'
import type { Policy } from '../model/policy.ts'
import type { Store } from '../model/store.ts'
import { type Duration, windowMsOf } from '../options/duration.ts'
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

interface KeyChangesOptions {
  readonly store: Store
  readonly penalty: Policy | undefined
  checksOf(keyed: Keyed): readonly Check[]
  /** @returns whether the store found anything to change */
  overwrite(op: 'reset' | 'block', checks: readonly Check[]): Promise<boolean>
}

/** Resets and blocks of one limiter. */
export class KeyChanges {
  readonly #options: KeyChangesOptions

  constructor(options: KeyChangesOptions) {
    this.#options = options
  }

  reset(key: KeyOrDigest): Promise<boolean> {
    return this.#actOn(key, (keyed) =>
      keyed ? this.resetChecks(this.#options.checksOf(keyed)) : false,
    )
  }

  block(key: KeyOrDigest, duration: Duration): Promise<boolean> {
    return this.#actOn(key, (keyed) => {
      const { penalty } = this.#options
      if (!penalty) throw penaltyMissing()
      const blockMs = windowMsOf(duration, 'for')
      if (!keyed) throw digestUnknown()
      return this.overwrite('block', [checkOf(penalty, keyed, blockMs)])
    })
  }

  unblock(key: KeyOrDigest): Promise<boolean> {
    return this.#actOn(key, (keyed) => {
      const { penalty } = this.#options
      if (!penalty) throw penaltyMissing()
      return keyed ? this.overwrite('reset', [checkOf(penalty, keyed, 1)]) : false
    })
  }

  async resetChecks(checks: readonly Check[]): Promise<boolean> {
    return this.overwrite('reset', checks.filter(isLimited))
  }

  /** Returns whether the store found anything to change. */
  async overwrite(op: 'reset' | 'block', checks: readonly Check[]): Promise<boolean> {
    if (checks.length === 0) return false
    try {
      return await this.#options.overwrite(op, checks)
    } catch (error) {
      throw storeError(error)
    }
  }

  /** Acts on a key at once if the store can, so that it decides later calls after this one. */
  #actOn(
    key: KeyOrDigest,
    act: (keyed: Keyed | undefined) => MaybePromise<boolean>,
  ): Promise<boolean> {
    return promised(() => andThen(keyedBy(key, this.#options.store), act))
  }
}
