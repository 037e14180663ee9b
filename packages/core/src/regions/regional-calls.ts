import { unknownOutcome } from '../engine/outcome.ts'
import type { Check, GrantCheck, Held, ResetCheck } from '../model/check.ts'
import type { Cancellation, Granted, Outcome, Store } from '../model/store.ts'
import { errorText, SluiceError } from '../options/errors.ts'
import { refundCentral } from './central.ts'
import {
  answersOf,
  decideInRegion,
  fromLocal,
  localCheck,
  type Region,
} from './decide-in-region.ts'
import type { RegionBoard } from './region-board.ts'
import { isDivided } from './regional-policies.ts'

/** Returns the calls of a store that decides in its region, and borrows at the global store. */
export function regionalCalls(
  region: Region,
  board: RegionBoard,
): Pick<Store, 'apply' | 'change' | 'grant'> {
  const { local, central } = region

  async function charge(checks: readonly Check[]): Promise<readonly Outcome[]> {
    const [here, there] = await Promise.all([
      answersOf(checks.filter(isHere), (some) =>
        local.apply(
          'charge',
          some.map((check) => localCheck(check, region)),
        ),
      ),
      answersOf(
        checks.filter(isGlobal),
        async (some) => (await central.decide('charge', some)).outcomes,
      ),
    ])
    return checks.map((check) => {
      const found = here.get(check)
      return found ? fromLocal(check, found) : (there.get(check) ?? unknownOutcome(check))
    })
  }

  async function refund(checks: readonly Held[]): Promise<readonly boolean[]> {
    const counted = checks.filter(({ receipt }) => !receipt.home)
    const here = answersOf(counted, (some) => local.change({ op: 'refund', checks: some }))
    const refunded = checks.map(async (held) =>
      held.receipt.home ? refundCentral(held) : ((await here).get(held) ?? false),
    )
    return Promise.all(refunded)
  }

  /** The global store first: while it is away, nothing is reset. */
  async function reset(
    checks: readonly ResetCheck[],
    cancellation?: Cancellation,
  ): Promise<readonly boolean[]> {
    const atGlobal = checks.filter((check) => isDivided(check.policy) || isGlobal(check))
    let there: ReadonlyMap<Check, boolean>
    try {
      there = await answersOf(atGlobal, (some) => central.reset(some))
    } catch (cause) {
      // The local store is there, and goes on.
      const message = `nothing was reset in this region, since the global store failed: ${errorText(cause)}`
      throw new SluiceError('SLUICE_STORE_CHECK', message, { cause })
    }
    if (atGlobal.length > 0) cancellation?.control?.sent()
    const atLocal = checks.filter(isHere)
    const here = await answersOf(atLocal, (some) => {
      const own = some.map((check) => localCheck(check, region))
      return local.change({ op: 'reset', checks: own }, cancellation)
    })
    if (atLocal.length > 0) board.tell({ op: 'reset', checks: atLocal })
    return checks.map((check) => there.get(check) || here.get(check) || false)
  }

  /** Grants units of the share. The grants of the global store are taken behind this one. */
  async function grant(checks: readonly GrantCheck[]): Promise<readonly Granted[]> {
    board.open(checks)
    const found = await answersOf(checks.filter(isHere), (some) => {
      const own = some.map((check) => localCheck(check, region))
      return local.grant?.(own) ?? []
    })
    return checks.map((check) => found.get(check) ?? noGrant)
  }

  return {
    async apply(op, checks, cancellation) {
      board.open(checks)
      return op === 'charge' ? charge(checks) : decideInRegion(op, checks, region, cancellation)
    },
    async change(change, cancellation) {
      board.open(change.checks)
      if (change.op === 'refund') return refund(change.checks)
      if (change.op === 'reset') return reset(change.checks, cancellation)
      const changed = await local.change(change, cancellation)
      if (change.op === 'block') board.tell(change)
      return changed
    },
    ...(local.grant && { grant }),
  }
}

const noGrant: Granted = { units: 0, remaining: undefined, resetMs: undefined, settled: undefined }

function isGlobal({ policy }: Check): boolean {
  return policy.reach === 'global'
}

function isHere(check: Check): boolean {
  return !isGlobal(check)
}
