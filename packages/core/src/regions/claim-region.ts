import type { Store } from '../model/store.ts'
import { SluiceError } from '../options/errors.ts'
import { processWide } from '../runtime/process-wide.ts'
import type { RegionStores } from './shares.ts'

/** A region whose store is in use in this process. */
interface Claim {
  /** The spaces of its two stores. */
  readonly local: object
  readonly global: object
  readonly region: string
  readonly shares: string
  readonly users: Set<RegionStores>
}

const claims = processWide('@sluice/core/regions/3', () => new Set<Claim>())

/**
 * Claims two stores for a region. All stores of a region get the same claim.
 * @throws SluiceError if one of the stores is in use in another way
 */
export function claimRegion(stores: RegionStores): Claim {
  const [local, global] = [spaceOf(stores.local), spaceOf(stores.global)]
  const { region, text: shares } = stores.shares
  if (local === global) {
    throw taken('local and global are the same store; give each region its own Redis, or a prefix')
  }
  const all = [...claims]
  const known = all.find((claim) => claim.local === local)
  if (all.some((claim) => claim !== known && claim.global === global && claim.region === region)) {
    throw taken(
      `region '${region}' already has another local store, and would get its share twice; use one store per region`,
    )
  }
  if (known && (known.region !== region || known.global !== global || known.shares !== shares)) {
    throw taken(
      `local is already the store of region '${known.region}'; give each region its own store, and the same global store and shares to all stores of a region`,
    )
  }
  const own = known ?? { local, global, region, shares, users: new Set() }
  claims.add(own)
  own.users.add(stores)
  return own
}

/** Ends the claim of a region once none of its stores is in use. */
export function giveUpRegion(claim: Claim, stores: RegionStores): void {
  claim.users.delete(stores)
  if (claim.users.size === 0) claims.delete(claim)
}

function spaceOf(store: Store): object {
  return store.space ?? store
}

function taken(problem: string): SluiceError {
  return new SluiceError('SLUICE_OPTION_INVALID', `regionalStore: ${problem}`)
}
