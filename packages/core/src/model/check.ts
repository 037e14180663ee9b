import type { ClosedGrant, GrantTerms } from '../algorithms/grant.ts'
import { fractionOf } from '../runtime/hash.ts'
import type { MaybePromise } from '../runtime/maybe-promise.ts'
import type { Policy } from './policy.ts'

/** Maximum key length in characters, like Node's headers: hashing must not block the process. */
export const maxKeyLength = 16_384

/** One policy applied to one key at one cost. It has the policy, so a store needs no set-up. */
export interface Check {
  readonly policy: Policy
  /** The identity to count: a non-empty string of at most `maxKeyLength`, as resolved. */
  readonly key: string
  /** The key as resolved, if `key` contains more, such as a private policy's place. @default key */
  readonly identity?: string
  /** Digest of the key, as `StoreKeys.keyFor` returned it. The key itself is unknown then. */
  readonly digest?: string
  /** Units, a whole number ≥ 0. */
  readonly cost: number
  /** The limit for this request: a whole number ≥ 0. */
  readonly limit: number
  /** True if the policy is in shadow mode here. @default by its share of enforced keys */
  readonly shadow?: boolean
}

/** The key of one policy. */
export type CountedKey = Pick<Check, 'policy' | 'key' | 'digest'>

/** Receipt for units taken, for refunds. Opaque: a store reads only its own receipts. */
export class Receipt {
  readonly check: Check
  /** The time under which the units are recorded, or the number of their lease. */
  readonly at: number
  /** Incarnation of the key that took them: a reset starts a new one. */
  readonly incarnation: unknown
  /** The account that holds the units; `undefined` if the store has counted them. */
  home: Home | undefined
  /** Units given back so far, for any copy of the decision and of this package. */
  refunded = 0

  constructor(check: Check, at: number, incarnation: unknown, home?: Home) {
    this.check = check
    this.at = at
    this.incarnation = incarnation
    this.home = home
  }

  /** A decision may be logged; the identity in its receipts must not be. */
  toJSON(): undefined {
    return undefined
  }
}

const isReceipt = Symbol.for('@sluice/core/receipt/2')
Object.defineProperty(Receipt.prototype, isReceipt, { value: true })

/** Distinguishes a receipt from a copy: nobody knows what the copy has given back. */
export function isReceiptItself(receipt: Receipt | undefined): receipt is Receipt {
  return receipt !== undefined && Reflect.get(receipt, isReceipt) === true
}

/** A check whose units a decision took and has not given back. `cost` is the amount to change. */
export interface Held extends Check {
  /** The receipt from the decision's outcome. */
  readonly receipt: Receipt
  /** For `refund`: units of the receipt that were given back before. @default 0 */
  readonly refunded?: number
}

/** A check whose key must be reset. */
export interface ResetCheck extends Check {
  /** Grants of which this process has spent nothing since. @default none */
  readonly closed?: readonly ClosedGrant[]
}

/** A penalty and a key to block. */
export interface BlockCheck extends Omit<Check, 'cost'> {
  /** Time (ms) from now for which the key is denied. */
  readonly blockMs: number
}

/** A check whose `cost` is the number of units to be granted to a process. */
export interface GrantCheck extends Check {
  readonly terms: GrantTerms
}

/** A change of units that a decision took. */
export type HeldOp = 'refund' | 'release' | 'renew'

/** Changes at the store what was taken there. Never rejects; returns whether anything was there. */
export type ChangeAtStore = (op: HeldOp, held: readonly Held[]) => MaybePromise<boolean>

/** Returns whether a change found anything, or for a renewal, all of it. */
export function hasChanged(op: HeldOp, changed: readonly boolean[]): boolean {
  return op === 'renew' ? !changed.includes(false) : changed.includes(true)
}

/**
 * An account of units that the store has not counted, or not under these receipts. It is called,
 * never compared: a process may contain two copies of this package.
 */
export interface Home {
  /** Gives back `cost` units as far as they still count. Returns whether there were any. */
  giveBack(held: Held, changeAtStore: ChangeAtStore): MaybePromise<boolean>
  /** Ends or renews a lease, if the account has leases. Returns whether it was still running. */
  change?(op: 'release' | 'renew', held: Held): boolean
}

/** Takes units out of a receipt, for the store or the account that has to change them. */
export function takeBack(receipt: Receipt, cost: number): Held {
  const { refunded } = receipt
  receipt.refunded += cost
  return { ...receipt.check, cost, receipt, refunded }
}

/** Gives units back to the store or account that counted them. */
export function giveBack(
  receipt: Receipt,
  cost: number,
  changeAtStore: ChangeAtStore,
): MaybePromise<boolean> {
  const held = takeBack(receipt, cost)
  return receipt.home?.giveBack(held, changeAtStore) ?? changeAtStore('refund', [held])
}

// `console.log` of Node must not print the identity either.
Object.defineProperty(Receipt.prototype, Symbol.for('nodejs.util.inspect.custom'), {
  value: () => 'Receipt {}',
})

/** Returns whether a check has a limit: others need no store. */
export function isLimited({ limit }: Pick<Check, 'limit'>): boolean {
  return limit !== Number.POSITIVE_INFINITY
}

/** Returns whether the policy of a check is enforced for every key, as usual. */
export function isSurelyEnforced({ policy, shadow }: Pick<Check, 'policy' | 'shadow'>): boolean {
  return shadow !== true && policy.enforcedShare >= 1
}

/** Divides checks into enforced ones, and ones that are only evaluated. */
export function divideChecks<C extends Check>(
  checks: readonly C[],
): { readonly enforced: readonly C[]; readonly shadows: readonly C[] } {
  if (checks.every(isSurelyEnforced)) return { enforced: checks, shadows: [] }
  return {
    enforced: checks.filter((check) => !isInShadow(check)),
    shadows: checks.filter(isInShadow),
  }
}

/** The check decides, or else the hash of its policy and key. */
function isInShadow({ policy: { id, enforcedShare: share }, key, shadow }: Check): boolean {
  if (shadow !== undefined || share === 1) return shadow ?? false
  return share === 0 || fractionOf(`${id} ${key}`) >= share
}
