import { unknownOutcome } from '../engine/outcome.ts'
import type { Check, Held } from '../model/check.ts'
import type { RegionReport, RegionUse, StoreRegion } from '../model/region.ts'
import type { Cancellation, Outcome, Store, StoreOp } from '../model/store.ts'
import { errorText, SluiceError } from '../options/errors.ts'
import { invalid, knownFields, orDefault, wholeNumber } from '../options/options.ts'
import { warnOnce } from '../options/warn.ts'
import { Central, refundCentral } from './central.ts'
import { checkPolicies } from './check-policies.ts'
import { claimRegion } from './claim-region.ts'
import {
  boundsOf,
  decideInRegion,
  fromLocal,
  isDivided,
  localCheck,
  type Region,
} from './decide-in-region.ts'
import { RegionBoard } from './region-board.ts'
import { Shares } from './shares.ts'
import { asChecked, inOrder, partsOf } from './two-stores.ts'

/** The two stores of a region, and the shares of all regions. */
export interface RegionalStoreOptions {
  /** The region of this process: one that `shares` names. */
  region: string
  /** The store of this region: it decides all that it can. */
  local: Store
  /** The store of all regions: the pool, the policies of reach `global`, and the control plane. */
  global: Store
  /**
   * The share of each limit that is guaranteed to each region, in millionths at the finest. The
   * regions borrow the rest. All processes of all regions need the same shares.
   */
  shares: Readonly<Record<string, number>>
  /**
   * The longest that a request waits for the global store, in ms: 1 to 60,000, and less than the
   * `deadlineMs` of the limiters.
   * @default 50
   */
  globalDeadlineMs?: number | undefined
}

/** A store of one region, which shares its limits with the other regions. */
export interface RegionalStore extends Store {
  /** Returns the usage of each region, as its processes last told. */
  regions(): readonly RegionReport[]
  readonly region: StoreRegion
  close(): Promise<void>
}

/**
 * Divides limits among regions, so that they are decided in the region. Each region has a
 * guaranteed share, and borrows from the rest. The sum over the regions never exceeds the limit.
 * `close` closes the two stores, and no clients.
 * @example
 * const store = regionalStore({
 *   region: 'eu',
 *   local: redisStore(eu),
 *   global: redisStore(global),
 *   shares: { eu: 0.4, us: 0.4 },
 * })
 * @throws SluiceError when an option is out of range, or a store is that of another region already
 */
export function regionalStore(options: RegionalStoreOptions): RegionalStore {
  knownFields(options, 'regionalStore', ['region', 'local', 'global', 'shares', 'globalDeadlineMs'])
  const shares = new Shares(options.region, options.shares)
  const local = storeOf(options.local, 'local')
  const global = storeOf(options.global, 'global')
  if (!global.grantsUnits) {
    throw invalid(
      { option: 'global' },
      options.global,
      "a store that grants units, such as redisStore(client) with the encoding 'packed'",
    )
  }
  const globalDeadlineMs = wholeNumber(
    orDefault(options.globalDeadlineMs, 50),
    { option: 'globalDeadlineMs' },
    { min: 1, max: 60_000 },
  )
  const { region } = shares
  const claim = claimRegion({ local, global, region, shares: shares.text })
  const central = new Central({
    store: global,
    shares,
    deadlineMs: globalDeadlineMs,
    onFailure: (error) =>
      warnOnce(
        `the global store of region '${region}' failed; the region keeps its shares and its grants: ${errorText(error)}`,
        `global store of ${region}`,
      ),
  })
  const counters = { fromShare: 0, borrowed: 0 }
  const own: Region = { local, shares, central, counters }
  const usage = (): RegionUse => ({ share: shares.own, ...counters, held: central.heldUnits })
  const board = new RegionBoard({
    region,
    shares: shares.text,
    local,
    global,
    usage,
    onOtherShares: (other) =>
      warnOnce(
        `region '${other}' has other shares than region '${region}', so the sum may exceed the limits; give all processes the same shares`,
        `shares of ${other}`,
      ),
  })

  const isGlobal = ({ policy }: Check): boolean => policy.reach === 'global'

  async function applyHere(
    op: StoreOp,
    checks: readonly Check[],
    cancellation?: Cancellation,
  ): Promise<readonly Outcome[]> {
    if (checks.length === 0) return []
    const asked = checks.map((check) => localCheck(check, own))
    return asChecked(checks, await local.apply(op, asked, cancellation), fromLocal)
  }

  async function chargeCentral(checks: readonly Check[]): Promise<readonly Outcome[]> {
    if (checks.length === 0) return []
    const { outcomes } = await central.decide(
      'charge',
      checks.map((check) => central.checkOf(check)),
    )
    return asChecked(checks, outcomes, (check, outcome) => central.outcomeOf(check, outcome))
  }

  async function charge(checks: readonly Check[]): Promise<readonly Outcome[]> {
    const here = checks.filter((check) => !isGlobal(check))
    const there = checks.filter(isGlobal)
    const [found, others] = await Promise.all([applyHere('charge', here), chargeCentral(there)])
    return inOrder(checks, [
      [here, found],
      [there, others],
    ])
  }

  /** Grants units of the share. The grants of the global store are taken behind this one. */
  async function grant(checks: readonly Check[]): Promise<readonly Outcome[]> {
    const here = checks.filter((check) => !isGlobal(check))
    const none = checks.map((check) => ({ ...unknownOutcome(check), allowed: false, granted: 0 }))
    return inOrder(checks, [
      [checks, none],
      [here, await applyHere('grant', here)],
    ])
  }

  async function refund(
    checks: readonly Check[],
    cancellation?: Cancellation,
  ): Promise<readonly Outcome[]> {
    const there = checks.filter(isCentral)
    const here = checks.filter((check) => !isCentral(check))
    const [found, others] = await Promise.all([
      here.length > 0 ? local.apply('refund', here, cancellation) : [],
      Promise.all(
        there.map(async (held) => ({
          ...unknownOutcome(held),
          allowed: await refundCentral(held),
        })),
      ),
    ])
    return inOrder(checks, [
      [here, found],
      [there, others],
    ])
  }

  /** The global store first: while it is away, nothing is reset. */
  async function reset(
    checks: readonly Check[],
    cancellation?: Cancellation,
  ): Promise<readonly Outcome[]> {
    const there = checks.filter((check) => isDivided(check.policy) || isGlobal(check))
    const here = checks.filter((check) => !isGlobal(check))
    const others = there.length > 0 ? await resetCentral(there) : []
    if (there.length > 0) cancellation?.control?.sent()
    const found = await applyHere('reset', here, cancellation)
    if (here.length > 0) board.tell('reset', here)
    const changed = new Set(there.filter((_, index) => others[index]?.allowed))
    return inOrder(checks, [
      [there, others],
      [here, found],
    ]).map((outcome, index) => {
      const check = checks[index]
      return check && changed.has(check) ? { ...outcome, allowed: true } : outcome
    })
  }

  async function resetCentral(checks: readonly Check[]): Promise<readonly Outcome[]> {
    try {
      return await central.reset(checks)
    } catch (cause) {
      // The local store is there, and goes on.
      const message = `nothing was reset in this region, since the global store failed: ${errorText(cause)}`
      throw new SluiceError('SLUICE_STORE_CHECK', message, { cause })
    }
  }

  async function block(
    checks: readonly Check[],
    cancellation?: Cancellation,
  ): Promise<readonly Outcome[]> {
    const outcomes = await local.apply('block', checks, cancellation)
    board.tell('block', checks)
    return outcomes
  }

  async function apply(
    op: StoreOp,
    checks: readonly Check[],
    cancellation?: Cancellation,
  ): Promise<readonly Outcome[]> {
    board.open(checks)
    switch (op) {
      case 'consume':
      case 'peek':
        return decideInRegion(op, checks, own, cancellation)
      case 'charge':
        return charge(checks)
      case 'grant':
        return grant(checks)
      case 'refund':
        return refund(checks, cancellation)
      case 'reset':
        return reset(checks, cancellation)
      case 'block':
        return block(checks, cancellation)
      case 'release':
      case 'renew':
        return local.apply(op, checks, cancellation)
    }
  }

  return {
    apply,
    accept(policies, deadlineMs) {
      checkPolicies(policies, { deadlineMs, globalDeadlineMs })
    },
    regions: () => board.reports(),
    region: {
      name: region,
      get isGlobalAway() {
        return central.isAway
      },
      use: usage,
      reports: () => board.reports(),
      boundsOf: (policy) => boundsOf(policy, shares),
      grants: () => central.grants,
    },
    ...partsOf(local, global),
    space: claim.space,
    fleet: {
      // While the local store is away, each process enforces its part of the share.
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
      claim.giveUp()
      await central.close()
      await Promise.all([local.close?.(), global.close?.()])
    },
  }
}

/**
 * Checks the store of a part of an application that needs all counts in one place. Returns the
 * store.
 * @throws SluiceError when it is a store of a region
 */
export function withoutRegions<S extends Store | undefined>(store: S, option = 'store'): S {
  if (store?.region === undefined) return store
  const legal = 'a store that counts in one place, such as the global store of the regionalStore'
  throw invalid({ option }, store.name, legal)
}

/** Tells whether the global store has counted the units of a check. */
function isCentral(check: Check): check is Held {
  return check.receipt?.home !== undefined
}

function storeOf(store: unknown, option: string): Store {
  if (isStore(store)) return store
  throw invalid({ option }, store, 'a store, such as redisStore(client)')
}

function isStore(store: unknown): store is Store {
  return (
    typeof store === 'object' &&
    store !== null &&
    'apply' in store &&
    typeof store.apply === 'function'
  )
}
