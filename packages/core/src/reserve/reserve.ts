import { stateKey } from '../engine/working-set.ts'
import { type Check, divideChecks } from '../model/check.ts'
import { type Decide, type Decision, decisionOf } from '../model/decision.ts'
import type { Policy } from '../model/policy.ts'
import type { Caller } from '../resilience/caller.ts'
import { Alarm, momentNow } from '../waiting/timers.ts'
import { Pool } from './pool.ts'
import { Reservation } from './reservation.ts'
import { CountedUnits } from './units.ts'

/** A limiter's access to its store. */
interface ReserveWay {
  readonly caller: Caller
  readonly decide: Decide
  refund(decision: Decision, options?: { units: number; policies: Policy[] }): Promise<boolean>
}

interface Part {
  readonly check: Check
  readonly account: Pool | CountedUnits
}

/** Amounts of a reservation. */
interface ReservedAmounts {
  readonly units: number
  /**
   * Units to request when fewer than half of them are left; 0 to never request any.
   * @default a quarter of `units`, rounded up
   */
  readonly step?: number
}

/** Units reserved for one piece of work, to be divided into budgets. */
export interface Reserved {
  readonly decision: Decision
  /** Creates the budget of checks with the same cost, `units`. Each check belongs to one budget. */
  budget(checks: readonly Check[], amounts: ReservedAmounts): Reservation
}

/** Reserves units for the work of one limiter. */
export class Reservations {
  readonly #way: ReserveWay
  /** By key and by limit: a unit is spent only under its own limit. */
  readonly #pools = new Map<string, Pool>()
  readonly #open = new Set<Reservation>()
  readonly #alarm = new Alarm(() => this.#sweep())
  /** Nothing more is reserved. */
  #isClosed = false

  constructor(way: ReserveWay) {
    this.#way = way
  }

  /** Reserves the costs of checks with `reserve`, and takes the others; or none, if one denies. */
  async reserve(checks: readonly Check[]): Promise<Reserved> {
    const { decide, refund } = this.#way
    // Unlimited keys need no reservation, and a shadow policy must not delay anybody.
    const parts = divideChecks(checks)
      .enforced.filter(({ policy, limit }) => policy.reserveMs > 0 && Number.isFinite(limit))
      .map((check): Part => ({ check, account: this.#accountOf(check) }))
    const decision = await this.#decideAll(checks, parts)
    return {
      decision,
      budget: (own, { units, step = Math.ceil(units / 4) }) => {
        const ownParts = parts.filter(({ check }) => own.includes(check))
        const held = ownParts.map(({ check }) => check)
        const shadows = own.filter((one) => one.policy.reserveMs > 0 && !held.includes(one))
        const from = {
          accounts: ownParts.map(({ account }) => account),
          obtain: (cost: number, request: object) =>
            this.#obtainAll(
              ownParts.map(({ account, check }) => ({ account, check: { ...check, cost } })),
              request,
            ),
          explain: async (more: number, request: object) =>
            refused(await decide('peek', withCost(held, more), request)),
          settle: (missing: number, total: number) => {
            this.#open.delete(reservation)
            // Shadow policies took the estimate. It is replaced with the units spent.
            const more = total - units
            const owed = [...withCost(held, missing), ...withCost(shadows, more)]
            const charged = owed.filter(({ cost }) => cost > 0)
            const policies = more < 0 ? shadows.map(({ policy }) => policy) : []
            return Promise.all([
              charged.length > 0 && decide('charge', charged),
              policies.length > 0 && refund(decision, { units: -more, policies }),
            ])
          },
        }
        const reservation = new Reservation(decision, from, { units, step })
        if (decision.allowed && ownParts.length > 0) this.#open.add(reservation)
        return reservation
      },
    }
  }

  /** Ends all reservations. Resolves when the store knows, or has not answered in time. */
  close(): Promise<unknown> | undefined {
    this.#isClosed = true
    this.#alarm.stop()
    const ends = [...this.#open].map((reservation) => reservation.cancel())
    for (const pool of this.#pools.values()) ends.push(pool.flush())
    this.#pools.clear()
    return ends.length === 0 ? undefined : Promise.all(ends)
  }

  #accountOf(check: Check): Part['account'] {
    const { caller } = this.#way
    const { policy, limit } = check
    // Without grants there is nothing that reservations could share.
    if (policy.counting === policy.algorithm) return new CountedUnits(caller)
    const name = `${limit} ${stateKey(check)}`
    const known = this.#pools.get(name)
    if (known) return known
    const pool = new Pool(check, caller)
    this.#pools.set(name, pool)
    this.#alarm.within(pool.lookMs)
    return pool
  }

  #sweep(): void {
    const now = momentNow()
    for (const [name, pool] of this.#pools) {
      if (pool.sweep(now)) this.#alarm.within(pool.lookMs)
      else this.#pools.delete(name)
    }
  }

  async #decideAll(checks: readonly Check[], parts: readonly Part[]): Promise<Decision> {
    const { decide, refund } = this.#way
    // All calls for one reservation share one deadline.
    const request = {}
    const reserving = new Set(parts.map(({ check }) => check))
    const others = checks.filter((check) => !reserving.has(check))
    for (let isLast = false; ; isLast = true) {
      const obtained = await this.#obtainAll(parts, request)
      if (obtained) {
        let isAllowed = false
        try {
          const rest = await decide('consume', others, request)
          isAllowed = rest.allowed
          return together(checks, obtained, rest)
        } finally {
          if (!isAllowed) await releaseAll(parts)
        }
      }
      // It counts the denial if necessary, and finds the wait.
      const denial = await decide('consume', checks, request)
      if (!denial.allowed) return denial
      // Units were returned meanwhile.
      await refund(denial)
      if (isLast || denial.source !== 'store') return refused(denial)
    }
  }

  /**
   * Returns the decisions of all parts; `undefined` if one of them denies, so that none is taken.
   * @throws or rejects if one of them failed: then none is taken either
   */
  async #obtainAll(
    parts: readonly Part[],
    request: object,
  ): Promise<readonly Decision[] | undefined> {
    const obtaining = parts.map(({ account, check }) => account.obtain(check, request))
    const ends = await Promise.allSettled(obtaining)
    const obtained = ends.map((end) => (end.status === 'fulfilled' ? end.value : undefined))
    const known = obtained.filter((decision) => decision !== undefined)
    if (known.length === parts.length && !this.#isClosed) return known
    await releaseAll(parts.filter((_, index) => obtained[index]))
    const failed = ends.find((end) => end.status === 'rejected')
    if (failed) throw failed.reason
    return undefined
  }
}

function withCost(checks: readonly Check[], cost: number): readonly Check[] {
  return checks.map((check) => ({ ...check, cost }))
}

async function releaseAll(parts: readonly Part[]): Promise<void> {
  await Promise.all(parts.map(({ account, check }) => account.release(check.cost)))
}

/** One decision, with the outcomes in the order of the checks. */
function together(
  checks: readonly Check[],
  obtained: readonly Decision[],
  rest: Decision,
): Decision {
  const all = [rest, ...obtained]
  // The failure modes `open` and `closed` have no outcomes.
  const isUnasked = ({ source }: Decision) => source === 'closed' || source === 'open'
  const unasked = (rest.allowed ? all : [rest]).find(isUnasked)
  if (unasked) return unasked
  const found = new Map(
    all.flatMap(({ outcomes }) => outcomes.map((outcome) => [outcome.policy.id, outcome])),
  )
  // Shadow policies have no outcomes.
  const enforced = checks.filter(({ policy }) => found.has(policy.id))
  const outcomes = enforced.flatMap(({ policy }) => found.get(policy.id) ?? [])
  const source = all.find((decision) => decision.source !== 'store')?.source ?? 'store'
  return { ...decisionOf(outcomes, enforced, source), shadow: rest.shadow }
}

/** The decision for units that were returned too late. */
function refused(decision: Decision): Decision {
  return { ...decision, allowed: false, retryAfterMs: Math.max(1, decision.retryAfterMs) }
}
