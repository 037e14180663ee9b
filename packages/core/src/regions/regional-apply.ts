import { unknownOutcome } from '../engine/outcome.ts'
import type { Check, Held } from '../model/check.ts'
import type { Cancellation, Outcome, StoreOp } from '../model/store.ts'
import { errorText, SluiceError } from '../options/errors.ts'
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
}

function isGlobal({ policy }: Check): boolean {
  return policy.reach === 'global'
}

/** Tells whether the global store has counted the units of a check. */
function isCentral(check: Check): check is Held {
  return check.receipt?.home !== undefined
}
