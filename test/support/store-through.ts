import {
  andThen,
  type Change,
  type Check,
  type CountedKey,
  type GrantCheck,
  type Held,
  type MaybePromise,
  type Store,
  type StoreOp,
} from '@sluice/core'

export type AnyOp = StoreOp | 'grant'

/** A check of any operation. For `block`, `cost` is the duration in ms. */
export type AnyCheck = Check &
  Partial<Pick<Held, 'receipt' | 'refunded'> & Pick<GrantCheck, 'terms'>>

/**
 * A store that others stand before: each call waits for `before`, and fails with it.
 * @param before gets the operation and its checks
 */
export function storeThrough(
  store: Store | (() => Store),
  before: (op: AnyOp, checks: readonly CountedKey[]) => MaybePromise<unknown>,
): Store {
  const get = typeof store === 'function' ? store : () => store
  const { grant } = get()
  return {
    apply: (op, checks, cancellation) =>
      andThen(before(op, checks), () => get().apply(op, checks, cancellation)),
    change: (change, cancellation) =>
      andThen(before(change.op, change.checks), () => get().change(change, cancellation)),
    ...(grant && { grant: (checks) => andThen(before('grant', checks), () => grant(checks)) }),
  }
}

export function goneStore(store: Store): Store {
  return storeThrough(store, () => Promise.reject(new Error('gone')))
}

/** Returns the change that an operation makes; `undefined` for one that decides. */
export function changeOf(op: StoreOp, checks: readonly AnyCheck[]): Change | undefined {
  if (op === 'consume' || op === 'peek' || op === 'charge') return undefined
  if (op === 'reset') {
    return {
      op,
      checks: checks.map(({ terms, ...check }) =>
        terms ? { ...check, closed: terms.closed } : check,
      ),
    }
  }
  if (op === 'block') {
    return { op, checks: checks.map(({ cost, ...check }) => ({ ...check, blockMs: cost })) }
  }
  return {
    op,
    checks: checks.flatMap(({ receipt, ...check }) => (receipt ? [{ ...check, receipt }] : [])),
  }
}
