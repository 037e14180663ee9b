/** Units reserved in the store, which a process may spend without asking it. */
export interface KeyGrant {
  /** A random integer chosen by the process. */
  readonly id: number
  readonly units: number
  /** Time (ms, the store's clock) after which the process spends none of the units. */
  readonly endsAt: number
}

/** A grant that its process has closed, and no longer spends from. */
export interface ClosedGrant {
  readonly id: number
  /** Spent units. The rest come back. */
  readonly spent: number
}

/** A grant that its process renews, and continues to spend from. */
interface KeptGrant {
  readonly id: number
  /** Units that the process may still spend. All others were spent, except `freed`. */
  readonly left: number
  /** Units given up since the last call: they come back unspent. */
  readonly freed: number
}

/** The grant that a process takes, and those it returns, in one step of the store. */
export interface GrantTerms {
  /** Id of the grant to take. The cost of the check is the number of units requested. */
  readonly id: number
  /** Lifetime of the grant, in ms. */
  readonly lifeMs: number
  /** The grant gets at most the remaining units divided by this number. */
  readonly divisor: number
  /** Closed grants of this process. The store ignores unknown ones. */
  readonly closed: readonly ClosedGrant[]
  /** Grants whose spent units are recorded now, and whose lifetime starts again. @default none */
  readonly kept?: readonly KeptGrant[]
}

/** The answer of the store to `GrantTerms`. */
export interface TakenGrant {
  /** Units granted; may be 0. */
  readonly units: number
  /** The time under which spent units were recorded; `undefined` for none. */
  readonly settledAt: number | undefined
}

/** Most grants that one key may have at a time, so that its stored value stays bounded. */
export const maxGrants = 1_000

/** The longest lifetime (ms) of a grant: a tenth of the window. */
export function longestGrantMs(windowMs: number): number {
  return Math.floor(windowMs / 10)
}
