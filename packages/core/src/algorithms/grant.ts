/** Units that a process holds at the store, and may spend without asking. */
export interface KeyGrant {
  /** A random whole number, which the process has chosen. */
  readonly id: number
  readonly units: number
  /** Time (ms, clock of the store) from which the process spends none of the units. */
  readonly endsAt: number
}

/** A grant that its process has closed: it spends nothing of the grant any more. */
export interface ClosedGrant {
  readonly id: number
  /** The units that were spent. The others come back. */
  readonly spent: number
}

/** A grant that its process renews: it keeps spending the rest. */
export interface KeptGrant {
  readonly id: number
  /** The units that the process may still spend. All others were spent, apart from `freed`. */
  readonly left: number
  /** The units that come back unspent: those that were given up since the last call. */
  readonly freed: number
}

/** The grant that a process takes, and the grants that it returns, in one step of the store. */
export interface GrantTerms {
  /** The id of the grant to take. The cost of the check is the number of units that are wanted. */
  readonly id: number
  /** Life of the grant, in ms. */
  readonly lifeMs: number
  /** The grant is at most the remaining units divided by this number. */
  readonly divisor: number
  /** Closed grants of this process. The store passes over those that it does not hold. */
  readonly closed: readonly ClosedGrant[]
  /** Grants whose spent units are recorded now, and whose life begins anew. @default none */
  readonly kept?: readonly KeptGrant[]
}

/** The answer of the store to `GrantTerms`. */
export interface TakenGrant {
  /** Units of the grant that was taken; 0 for none. */
  readonly units: number
  /** The time that the spent units of closed grants are recorded under; `undefined` for none. */
  readonly settledAt: number | undefined
}

/** Number of grants that one key may have at a time, so that its stored value stays bounded. */
export const maxGrants = 1_000

/** The longest life (ms) of a grant, a tenth of the window: no stored end lies later. */
export function longestGrantMs(windowMs: number): number {
  return Math.floor(windowMs / 10)
}
