import { algorithmOf } from '../algorithms/table.ts'
import { isLimited } from '../deciders/set-apart.ts'
import {
  type ChangeAtStore,
  type Check,
  type Held,
  isReceiptItself,
  type Receipt,
} from '../model/check.ts'
import type { Decision } from '../model/decision.ts'
import type { Policy } from '../model/policy.ts'
import type { ManualChange, Store } from '../model/store.ts'
import { windowMsOf } from '../options/duration.ts'
import { SluiceError } from '../options/errors.ts'
import { invalid, knownFields, wholeNumber } from '../options/options.ts'
import { storeError } from '../resilience/store-monitor.ts'
import { andThen, type MaybePromise, promised } from '../runtime/maybe-promise.ts'
import { processWide } from '../runtime/process-wide.ts'
import { checkOf, type Keyed, type KeyOrDigest, keyedBy } from './arguments.ts'
import type { CheckLimiter, Limiter } from './limiter.ts'

/**
 * Units of each receipt that were given back, by whichever limiter, and whoever holds copies of the
 * decision.
 */
const spent = processWide('@sluice/core/spent-receipts/1', () => new WeakMap<Receipt, number>())

/**
 * Returns the methods that refund, release and renew what decisions hold, in the policies that are
 * enforced and in those in shadow.
 */
export function followUps(atStore: ChangeAtStore): Pick<Limiter, 'refund' | 'release' | 'renew'> {
  /**
   * Units that the store has counted are changed by one call, all others where they stand. Returns
   * for each change whether anything was there.
   */
  async function change(
    op: 'refund' | 'release' | 'renew',
    held: readonly Held[],
  ): Promise<readonly boolean[]> {
    const counted = held.filter(({ receipt }) => !receipt.home)
    const changes = held.flatMap((one): MaybePromise<boolean>[] => {
      const { home } = one.receipt
      if (!home) return []
      return [op === 'refund' ? home.giveBack(one, atStore) : (home[op]?.(one) ?? false)]
    })
    if (counted.length > 0) changes.push(atStore(op, counted))
    return Promise.all(changes)
  }

  /** @param share the units to end of those that one policy took; `undefined` for none */
  async function end(
    op: 'refund' | 'release',
    decision: Decision,
    share: (held: Held) => Held | undefined,
  ): Promise<boolean> {
    const endOf = (one: Decision) => {
      const held = heldBy(one).flatMap((each) => share(each) ?? [])
      for (const { receipt, cost } of held) spent.set(receipt, refundedOf(receipt) + cost)
      return change(op, held)
    }
    const own = endOf(decision)
    const shadows = decision.shadow ? await decision.shadow.decisions : []
    return (await Promise.all([own, ...shadows.map(endOf)])).flat().includes(true)
  }

  async function renewOne(decision: Decision): Promise<boolean> {
    const renewed = await change('renew', heldBy(decision).filter(isLease))
    return renewed.length > 0 && !renewed.includes(false)
  }

  return {
    async refund(decision, options = {}) {
      knownFields(options, 'options', ['units', 'policies'])
      const { units, policies } = options
      if (units !== undefined) {
        wholeNumber(units, { option: 'units', code: 'SLUICE_COST_INVALID' }, { min: 0 })
      }
      if (policies !== undefined && !Array.isArray(policies)) {
        throw invalid({ option: 'policies' }, policies, "an array of the limiter's policies")
      }
      return end('refund', decision, (held) => {
        if (policies?.some(({ id }) => id === held.policy.id) === false) return undefined
        if (units === undefined) return held
        const cost = Math.min(units, held.cost)
        return cost === 0 || isLease(held) ? undefined : { ...held, cost }
      })
    },
    release: (decision) => end('release', decision, (held) => (isLease(held) ? held : undefined)),
    async renew(decision) {
      const own = renewOne(decision)
      const shadows = decision?.shadow ? await decision.shadow.decisions : []
      await Promise.all(shadows.map(renewOne))
      return own
    },
  }
}

function isLease({ policy }: Check): boolean {
  return algorithmOf(policy).counts === 'leases'
}

function heldBy(decision: Decision): readonly Held[] {
  if (!Array.isArray(decision?.outcomes)) {
    throw invalid({ option: 'decision' }, decision, 'a decision of consume or charge')
  }
  return decision.outcomes.flatMap(({ receipt }) => {
    if (!isReceiptItself(receipt)) return []
    const refunded = refundedOf(receipt)
    const cost = receipt.check.cost - refunded
    return cost > 0 ? [{ ...receipt.check, cost, receipt, refunded }] : []
  })
}

function refundedOf(receipt: Receipt): number {
  return spent.get(receipt) ?? 0
}

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
