import type { RegionReport, StoreRegion } from '../model/region.ts'
import { isStore, type Store } from '../model/store.ts'
import {
  checkedElsewhere,
  countOption,
  type Option,
  type OptionsOf,
  type RequiredOption,
  readOptions,
} from '../options/option-table.ts'
import { invalid } from '../options/options.ts'
import { Central } from './central.ts'
import { claimRegion, giveUpRegion } from './claim-region.ts'
import { RegionBoard } from './region-board.ts'
import { regionalCalls } from './regional-calls.ts'
import { boundsOf, checkPolicies } from './regional-policies.ts'
import { Shares } from './shares.ts'

class RegionalStoreTable {
  /** Region of this process, one of those in `shares`. */
  region: RequiredOption<string> = checkedElsewhere
  /** Store of this region. It makes every decision that it can make on its own. */
  local: RequiredOption<Store> = storeOption
  /** Store of all regions: for the pool, policies with reach `global`, and the control plane. */
  global: RequiredOption<Store> = globalOption
  /**
   * Guaranteed share of each limit by region, in multiples of one millionth. The regions borrow the
   * rest from a pool. All processes of all regions need the same shares.
   */
  shares: RequiredOption<Readonly<Record<string, number>>> = checkedElsewhere
  /**
   * Maximum time (ms) that a request waits for the global store: 1 to 60,000, and less than the
   * limiters' `deadlineMs`.
   * @default 50
   */
  globalDeadlineMs?: Option<number, number> = countOption(50, { min: 1, max: 60_000 })
}

/** The two stores of a region, and the shares of all regions. */
export interface RegionalStoreOptions extends OptionsOf<RegionalStoreTable> {}

/** A store of one region, which shares its limits with the other regions. */
export interface RegionalStore extends Store {
  /** Returns the usage of each region, as last reported by its processes. */
  regions(): readonly RegionReport[]
  readonly region: StoreRegion
  close(): Promise<void>
}

/**
 * Divides limits among regions, so that each region decides locally. Each region has a guaranteed
 * share, and borrows from the rest. The sum over the regions never exceeds the limit. `close`
 * closes the two stores, but not their clients.
 * @example
 * const store = regionalStore({
 *   region: 'eu',
 *   local: redisStore(eu),
 *   global: redisStore(global),
 *   shares: { eu: 0.4, us: 0.4 },
 * })
 * @throws SluiceError if an option is out of range, or a store already belongs to another region
 */
export function regionalStore(options: RegionalStoreOptions): RegionalStore {
  const settings = readOptions(new RegionalStoreTable(), options, 'regionalStore')
  const { local, global, globalDeadlineMs } = settings
  const shares = new Shares(settings.region, settings.shares)
  const stores = { local, global, shares }
  const claim = claimRegion(stores)
  const central = new Central(stores, globalDeadlineMs)
  const board = new RegionBoard(central)

  return {
    ...regionalCalls(central, board),
    accept(policies, deadlineMs) {
      checkPolicies(policies, { deadlineMs, globalDeadlineMs })
    },
    regions: () => board.reports(),
    region: {
      name: shares.region,
      get isGlobalAway() {
        return central.isAway
      },
      use: () => central.use(),
      reports: () => board.reports(),
      boundsOf: (policy) => boundsOf(policy, shares),
      grants: () => central.grants,
    },
    name: 'regional',
    ...(local.denials && { denials: local.denials }),
    keys: {
      ...(local.keys?.digestOf && { digestOf: local.keys.digestOf.bind(local.keys) }),
      ...(local.keys?.keyFor && { keyFor: local.keys.keyFor.bind(local.keys) }),
    },
    ...(local.telemetry && { telemetry: local.telemetry }),
    ...(global.documents && { documents: global.documents }),
    ...(global.scripts && { scripts: global.scripts }),
    space: claim,
    fleet: {
      // While the local store is unavailable, each process enforces its part of the share.
      get instances() {
        return Math.ceil((local.fleet?.instances ?? 1) / shares.own)
      },
      get clockSkewMs() {
        return local.fleet?.clockSkewMs ?? 0
      },
      ...(global.fleet?.shareReport && {
        shareReport: global.fleet.shareReport.bind(global.fleet),
      }),
    },
    async close() {
      board.close()
      giveUpRegion(claim, stores)
      await central.close()
      await Promise.all([local.close?.(), global.close?.()])
    },
  }
}

/**
 * Returns the store of a part of an application that needs all counts in one place.
 * @throws SluiceError if it is a region's store
 */
export function withoutRegions<S extends Store | undefined>(store: S, option = 'store'): S {
  if (store?.region === undefined) return store
  const legal = 'a store that counts in one place, such as the global store of the regionalStore'
  throw invalid({ option }, store.name, legal)
}

function storeOption(store: unknown, option: string): Store {
  if (isStore(store)) return store
  throw invalid({ option }, store, 'a store, such as redisStore(client)')
}

function globalOption(value: unknown, option: string): Store {
  const store = storeOption(value, option)
  if (store.grant) return store
  const legal = "a store that grants units, such as redisStore(client) with the encoding 'packed'"
  throw invalid({ option }, store, legal)
}
