import { type Check, divideChecks } from '../model/check.ts'
import { type Decide, type Decision, decisionOf } from '../model/decision.ts'
import type { Policy } from '../model/policy.ts'
import type { Outcome } from '../model/store.ts'
import type { Caller } from '../resilience/caller.ts'
import { type Account, Pools } from './pools.ts'
import { Reservation, type ReservedFrom } from './reservation.ts'

interface OwnRefund {
  readonly units: number
  readonly policies: readonly Policy[]
}

/** The way of a limiter to reserve units. */
export interface ReserveWay {
  readonly caller: Caller
  readonly decide: Decide
  refund(decision: Decision, options?: OwnRefund): Promise<boolean>
}

/** The way of one reservation. */
interface OwnWay extends ReserveWay {
  readonly pools: Pools
  /** All calls for one reservation wait for one deadline together. */
  readonly request: object
}

interface Part {
  readonly check: Check
  readonly account: Account
}

/** Amounts of a reservation. */
export interface ReservedAmounts {
  readonly units: number
  /**
   * Units that it asks for when it has fewer than half of them left; 0: it never asks.
   * @default a quarter of `units`, rounded up
   */
  readonly step?: number
}

/** Units that were reserved for one piece of work, to be divided into budgets. */
export interface Reserved {
  readonly decision: Decision
  /** Makes the budget of checks with one cost, `units`. Each check belongs to one budget. */
  budget(checks: readonly Check[], amounts: ReservedAmounts): Reservation
}

/** Reserves units for the work of one limiter. */
export interface Reservations {
  /**
   * Reserves the costs of all checks whose policy has `reserve`, and takes those of the others. If
   * one of them denies, nothing is taken.
   */
  reserve(checks: readonly Check[]): Promise<Reserved>
  /** Gives up all units that are reserved at the store. */
  close(): Promise<unknown> | undefined
}

export function reservationsOf(way: ReserveWay): Reservations {
  const pools = new Pools(way.caller)
  return {
    reserve: (checks) => reserve(checks, { ...way, pools, request: {} }),
    close: () => pools.close(),
  }
}

async function reserve(checks: readonly Check[], way: OwnWay): Promise<Reserved> {
  const parts = partsOf(checks, way)
  const decision = await decideAll(checks, parts, way)
  return {
    decision,
    budget(own, { units, step = Math.ceil(units / 4) }) {
      const ownParts = parts.filter(({ check }) => own.includes(check))
      const held = ownParts.map(({ check }) => check)
      const shadows = own.filter((one) => one.policy.reserveMs > 0 && !held.includes(one))
      const from = reservedFrom(ownParts, way)
      const settled = (total: number) => settleShadows(decision, shadows, { units, total, way })
      return new Reservation(decision, { ...from, settled }, { units, step })
    },
  }
}

/** Policies in shadow took the estimate. They get what was spent in its place. */
async function settleShadows(
  decision: Decision,
  shadows: readonly Check[],
  { units, total, way }: { units: number; total: number; way: OwnWay },
): Promise<unknown> {
  if (shadows.length === 0 || units === total) return
  const policies = shadows.map(({ policy }) => policy)
  if (total < units) return way.refund(decision, { units: units - total, policies })
  return way.decide('charge', withCost(shadows, total - units))
}

const withCost = (checks: readonly Check[], cost: number): readonly Check[] =>
  checks.map((check) => ({ ...check, cost }))

function reservedFrom(parts: readonly Part[], way: OwnWay): Omit<ReservedFrom, 'settled'> {
  const checks = parts.map(({ check }) => check)
  return {
    accounts: parts.map(({ account }) => account),
    obtain: async (units, request) => {
      const grown = parts.map(({ account, check }) => {
        return { account, check: { ...check, cost: units } }
      })
      return (await obtainAll(grown, { ...way, request })) !== undefined
    },
    explain: async (units, request) => {
      const peeked = await way.decide('peek', withCost(checks, units), request)
      return peeked.allowed ? refused(peeked) : peeked
    },
    charge: async (units) => way.decide('charge', withCost(checks, units)),
  }
}

/** Unlimited keys need no reservation, and a policy in shadow must not keep anybody waiting. */
function partsOf(checks: readonly Check[], { pools }: OwnWay): readonly Part[] {
  return divideChecks(checks)
    .enforced.filter(({ policy, limit }) => policy.reserveMs > 0 && Number.isFinite(limit))
    .map((check) => ({ check, account: pools.of(check) }))
}

async function decideAll(
  checks: readonly Check[],
  parts: readonly Part[],
  way: OwnWay,
): Promise<Decision> {
  const { request } = way
  const reserving = new Set(parts.map(({ check }) => check))
  const others = checks.filter((check) => !reserving.has(check))
  for (let isLast = false; ; isLast = true) {
    const obtained = await obtainAll(parts, way)
    if (obtained) {
      let rest: Decision | undefined
      try {
        if (others.length > 0) rest = await way.decide('consume', others, request)
        return together(checks, [obtained, others, rest])
      } finally {
        if (others.length > 0 && !rest?.allowed) await releaseAll(parts)
      }
    }
    // It counts the denial where that is wanted, and tells the wait.
    const denial = await way.decide('consume', checks, request)
    if (!denial.allowed) return denial
    // Units came back meanwhile.
    await way.refund(denial)
    if (isLast || denial.source !== 'store') return refused(denial)
  }
}

/**
 * Returns the decisions of all parts; `undefined` if one of them denies, so that none is taken.
 * @throws or rejects when one of them failed: then none is taken either
 */
async function obtainAll(
  parts: readonly Part[],
  { pools, request }: OwnWay,
): Promise<readonly Decision[] | undefined> {
  const obtaining = parts.map(({ account, check }) => account.obtain(check, request))
  const ends = await Promise.allSettled(obtaining)
  const obtained = ends.map((end) => (end.status === 'fulfilled' ? end.value : undefined))
  const known = obtained.filter((decision) => decision !== undefined)
  if (known.length === parts.length && !pools.isClosed) return known
  await releaseAll(parts.filter((_, index) => obtained[index]))
  const failed = ends.find((end) => end.status === 'rejected')
  if (failed) throw failed.reason
  return undefined
}

async function releaseAll(parts: readonly Part[]): Promise<void> {
  await Promise.all(parts.map(({ account, check }) => account.release(check.cost)))
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
