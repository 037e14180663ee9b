import { type Check, divideChecks } from '../model/check.ts'
import type { Decide } from '../model/decision.ts'
import { type Decision, decisionOf } from '../model/decision.ts'
import type { Outcome } from '../model/store.ts'
import type { Caller } from '../resilience/pending-ask.ts'
import type { SharedStore } from '../resilience/shared-store.ts'
import type { Pool } from './pool.ts'
import { poolsOf } from './pools.ts'
import { Reservation } from './reservation.ts'

/** The way of a limiter to reserve units. */
export interface ReserveWay {
  readonly shared: SharedStore
  readonly caller: Caller
  readonly decide: Decide
  refund(decision: Decision): Promise<boolean>
}

interface Part {
  readonly check: Check
  readonly pool: Pool
}

/** Amounts of a reservation. */
export interface ReservedAmounts {
  readonly units: number
  /** Units that it asks for when it has fewer than half of them left; 0: it never asks. */
  readonly step: number
}

/** Reserves units for the work of one limiter. */
export interface Reservations {
  /**
   * Reserves the units of all checks whose policy has `reserve`, and takes those of the others. If
   * one of them denies, nothing is taken.
   */
  reserve(checks: readonly Check[], amounts: ReservedAmounts): Promise<Reservation>
  /** Gives up all units that are reserved at the store. */
  close(): Promise<unknown> | undefined
}

export function reservationsOf(way: ReserveWay): Reservations {
  return {
    reserve: (checks, amounts) => reserve(checks, amounts, way),
    close: () => poolsOf(way.shared).close(),
  }
}

async function reserve(
  checks: readonly Check[],
  amounts: ReservedAmounts,
  way: ReserveWay,
): Promise<Reservation> {
  const parts = partsOf(checks, way)
  const reserved = await decideAll(checks, parts, way)
  const reserving = parts.map(({ check }) => check)
  const withCost = (cost: number) => reserving.map((check) => ({ ...check, cost }))
  const from = {
    pools: parts.map(({ pool }) => pool),
    obtain: async (units: number) => {
      const grown = parts.map(({ pool, check }) => ({ pool, check: { ...check, cost: units } }))
      return (await obtainAll(grown, way)) !== undefined
    },
    explain: async (units: number) => {
      const peeked = await way.decide('peek', withCost(units))
      return peeked.allowed ? refused(peeked) : peeked
    },
    charge: async (units: number) => way.decide('charge', withCost(units)),
  }
  return new Reservation(reserved, from, amounts)
}

/** Unlimited keys need no reservation, and a policy in shadow must not keep anybody waiting. */
function partsOf(checks: readonly Check[], { shared, caller }: ReserveWay): readonly Part[] {
  const pools = poolsOf(shared)
  return divideChecks(checks)
    .enforced.filter(({ policy, limit }) => policy.reserveMs > 0 && Number.isFinite(limit))
    .map((check) => ({ check, pool: pools.of(check, caller) }))
}

async function decideAll(
  checks: readonly Check[],
  parts: readonly Part[],
  way: ReserveWay,
): Promise<Decision> {
  const reserving = new Set(parts.map(({ check }) => check))
  const others = checks.filter((check) => !reserving.has(check))
  for (let isLast = false; ; isLast = true) {
    const obtained = await obtainAll(parts, way)
    if (obtained) {
      const rest = others.length > 0 ? await way.decide('consume', others) : undefined
      if (rest?.allowed === false) await releaseAll(parts)
      return together(checks, [obtained, others, rest])
    }
    // It counts the denial where that is wanted, and tells the wait.
    const denial = await way.decide('consume', checks)
    if (!denial.allowed) return denial
    // Units came back meanwhile.
    await way.refund(denial)
    if (isLast) return refused(denial)
  }
}

/** Returns the decisions of all parts; `undefined` if one of them denies, so that none is taken. */
async function obtainAll(
  parts: readonly Part[],
  { caller }: ReserveWay,
): Promise<readonly Decision[] | undefined> {
  const obtained = await Promise.all(parts.map(({ pool, check }) => pool.obtain(check, caller)))
  const known = obtained.filter((decision) => decision !== undefined)
  if (known.length === parts.length) return known
  await releaseAll(parts.filter((_, index) => obtained[index]))
  return undefined
}

async function releaseAll(parts: readonly Part[]): Promise<void> {
  await Promise.all(parts.map(({ pool, check }) => pool.release(check.cost)))
}

/** One decision, with the outcomes in the order of the checks. */
function together(
  checks: readonly Check[],
  [obtained, others, rest]: [readonly Decision[], readonly Check[], Decision | undefined],
): Decision {
  const all = rest ? [...obtained, rest] : obtained
  // The failure modes `open` and `closed` have no outcomes.
  const isUnasked = ({ outcomes }: Decision) => outcomes.length === 0
  const unasked = all.find((one) => isUnasked(one) && !one.allowed) ?? all.find(isUnasked)
  if (unasked) return unasked
  const fromRest = (rest?.outcomes ?? []).values()
  const fromParts = obtained.flatMap(({ outcomes }) => outcomes).values()
  const inOrder = checks.flatMap((check): Outcome[] => {
    const { value } = others.includes(check) ? fromRest.next() : fromParts.next()
    return value ? [value] : []
  })
  const source = all.find((decision) => decision.source !== 'store')?.source ?? 'store'
  return { ...decisionOf(inOrder, checks, source), shadow: rest?.shadow }
}

/** The decision for units that came back too late. */
function refused(decision: Decision): Decision {
  return { ...decision, allowed: false, retryAfterMs: Math.max(1, decision.retryAfterMs) }
}
