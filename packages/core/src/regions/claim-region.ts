import type { Store } from '../model/store.ts'
import { SluiceError } from '../options/errors.ts'
import { processWide } from '../runtime/process-wide.ts'
import type { RegionStores } from './shares.ts'

/** A region whose store is in use in this process, and the space of its stores. */
interface Claim {
  /** The spaces of its two stores. */
  readonly local: object
  readonly global: object
  readonly region: string
  readonly shares: string
  readonly space: object
  users: number
}

const claims = processWide('@sluice/core/regions/2', () => new Set<Claim>())

/**
 * Claims two stores for a region. The claim ends when all claims are released.
 * @throws SluiceError if one of the stores is in use in another way
 */
export function claimRegion(stores: RegionStores): Pick<Claim, 'space'> & { giveUp(): void } {
  const [local, global] = [spaceOf(stores.local), spaceOf(stores.global)]
  const { region, text: shares } = stores.shares
  if (local === global) {
    throw taken('local and global are the same store; give each region its own Redis, or a prefix')
  }
  const all = [...claims]
  const known = all.find((claim) => claim.local === local)
  if (known && known.region !== region) {
    throw taken(
      `local is already the store of region '${known.region}'; give region '${region}' its own store`,
    )
  }
  if (all.some((claim) => claim !== known && claim.global === global && claim.region === region)) {
    throw taken(
      `region '${region}' already has another local store, and would get its share twice; use one store per region`,
    )
  }
  if (known && (known.global !== global || known.shares !== shares)) {
    throw taken(
      `region '${region}' is in use with another global store or with other shares; use the same for all of its stores`,
    )
  }
  const own = known ?? { local, global, region, shares, space: {}, users: 0 }
  claims.add(own)
  own.users += 1
  let isHeld = true
  return {
    space: own.space,
    giveUp() {
      if (isHeld) own.users -= 1
      isHeld = false
      if (own.users === 0) claims.delete(own)
    },
  }
}

function spaceOf(store: Store): object {
  return store.space ?? store
}

function taken(problem: string): SluiceError {
  return new SluiceError('SLUICE_OPTION_INVALID', `regionalStore: ${problem}`)
}
