import { unknownOutcome } from '../engine/outcome.ts'
import type { Check } from '../model/check.ts'
import type { Cancellation, Outcome, StoreOp } from '../model/store.ts'
import { errorText, SluiceError } from '../options/errors.ts'
import { andThen, type MaybePromise } from '../runtime/maybe-promise.ts'
import { refundCentral } from './central.ts'
import { decideInRegion, fromLocal, localCheck, type Region } from './decide-in-region.ts'
import type { RegionBoard } from './region-board.ts'
import { isDivided } from './regional-policies.ts'
import { asChecked, inOrder } from './two-stores.ts'

type Apply = (
  op: StoreOp,
  checks: readonly Check[],
  cancellation?: Cancellation,
) => Promise<readonly Outcome[]>

type Part = (checks: readonly Check[]) => MaybePromise<readonly Outcome[]>

/** Returns what applies operations at the stores of a region. */
export function regionalApply(region: Region, board: RegionBoard): Apply {
  const { local, central } = region

  async function applyHere(
    op: StoreOp,
    checks: readonly Check[],
    cancellation?: Cancellation,
  ): Promise<readonly Outcome[]> {
    if (checks.length === 0) return []
    const asked = checks.map((check) => localCheck(check, region))
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

  /** Has both stores apply their checks at once. */
  async function both(
    checks: readonly Check[],
    isThere: (check: Check) => boolean,
    apply: readonly [here: Part, there: Part],
  ): Promise<readonly Outcome[]> {
    const [here, there] = [checks.filter((check) => !isThere(check)), checks.filter(isThere)]
    const [found, others] = await Promise.all([apply[0](here), apply[1](there)])
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

  /** The global store first: while it is away, nothing is reset. */
  async function reset(
    checks: readonly Check[],
    cancellation?: Cancellation,
  ): Promise<readonly Outcome[]> {
    const there = checks.filter((check) => isDivided(check.policy) || isGlobal(check))
    const here = checks.filter((check) => !isGlobal(check))
    let others: readonly Outcome[] = []
    if (there.length > 0) {
      try {
        others = await central.reset(there)
      } catch (cause) {
        // The local store is there, and goes on.
        const message = `nothing was reset in this region, since the global store failed: ${errorText(cause)}`
        throw new SluiceError('SLUICE_STORE_CHECK', message, { cause })
      }
      cancellation?.control?.sent()
    }
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

  return async function apply(
    op: StoreOp,
    checks: readonly Check[],
    cancellation?: Cancellation,
  ): Promise<readonly Outcome[]> {
    board.open(checks)
    switch (op) {
      case 'consume':
      case 'peek':
        return decideInRegion(op, checks, region, cancellation)
      case 'charge':
        return both(checks, isGlobal, [(here) => applyHere('charge', here), chargeCentral])
      case 'grant':
        return grant(checks)
      case 'refund':
        return both(checks, isCentral, [
          (here) => (here.length > 0 ? local.apply('refund', here, cancellation) : []),
          refundThere,
        ])
      case 'reset':
        return reset(checks, cancellation)
      case 'block':
        return andThen(local.apply('block', checks, cancellation), (outcomes) => {
          board.tell('block', checks)
          return outcomes
        })
      case 'release':
      case 'renew':
        return local.apply(op, checks, cancellation)
    }
  }
}

function isGlobal({ policy }: Check): boolean {
  return policy.reach === 'global'
}

/** Tells whether the global store has counted the units of a check. */
function isCentral({ receipt }: Check): boolean {
  return receipt?.home !== undefined
}

function refundThere(checks: readonly Check[]): Promise<readonly Outcome[]> {
  return Promise.all(
    checks.map(async (check) => ({
      ...unknownOutcome(check),
      allowed: await refundCentral(check),
    })),
  )
}
