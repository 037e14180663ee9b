import { algorithmOf } from '../algorithms/table.ts'
import { unknownOutcome } from '../engine/outcome.ts'
import type { ChangeAtStore, Check, GrantCheck, Held, ResetCheck } from '../model/check.ts'
import type { Policy } from '../model/policy.ts'
import type { Cancellation, Granted, Outcome, Store } from '../model/store.ts'
import { errorText, SluiceError } from '../options/errors.ts'
import type { MaybePromise } from '../runtime/maybe-promise.ts'
import type { Central } from './central.ts'
import type { RegionBoard } from './region-board.ts'
import { isDivided } from './regional-policies.ts'
import type { RegionStores } from './shares.ts'

/** A region: its own store, its shares, and the global store. */
interface Region extends Pick<RegionStores, 'local' | 'shares'> {
  readonly central: Central
  /** Units that this process has admitted, since its start. */
  readonly counters: { fromShare: number; borrowed: number }
}

/** Returns the calls of a store that decides in its region, and borrows from the global store. */
export function regionalCalls(
  region: Region,
  board: RegionBoard,
): Pick<Store, 'apply' | 'change' | 'grant'> {
  const { local, central } = region
  const ownOf = <C extends Check>(checks: readonly C[]) =>
    checks.map((check) => localCheck(check, region))

  async function charge(checks: readonly Check[]): Promise<readonly Outcome[]> {
    const [here, there] = await Promise.all([
      answersOf(checks.filter(isHere), (some) => local.apply('charge', ownOf(some))),
      answersOf(checks.filter(isGlobal), async (some) => {
        return (await central.decide('charge', some)).outcomes
      }),
    ])
    return checks.map((check) => {
      const found = here.get(check)
      return found ? fromLocal(check, found) : (there.get(check) ?? unknownOutcome(check))
    })
  }

  async function refund(checks: readonly Held[]): Promise<readonly boolean[]> {
    const counted = checks.filter(({ receipt }) => !receipt.home)
    const here = answersOf(counted, (some) => local.change({ op: 'refund', checks: some }))
    const isRefunded = async (held: Held) => (await here).get(held) ?? false
    return Promise.all(
      checks.map((held) => held.receipt.home?.giveBack(held, notHere) ?? isRefunded(held)),
    )
  }

  /** The global store first: while it is unavailable, nothing is reset. */
  async function reset(
    checks: readonly ResetCheck[],
    cancellation?: Cancellation,
  ): Promise<readonly boolean[]> {
    const atGlobal = checks.filter((check) => isDivided(check.policy) || isGlobal(check))
    let there: ReadonlyMap<Check, boolean>
    try {
      there = await answersOf(atGlobal, (some) => central.reset(some))
    } catch (cause) {
      // The local store works, and continues.
      const message = `nothing was reset in this region, since the global store failed: ${errorText(cause)}`
      throw new SluiceError('SLUICE_STORE_CHECK', message, { cause })
    }
    if (atGlobal.length > 0) cancellation?.control?.sent()
    const atLocal = checks.filter(isHere)
    const here = await answersOf(atLocal, (some) =>
      local.change({ op: 'reset', checks: ownOf(some) }, cancellation),
    )
    if (atLocal.length > 0) board.tell({ op: 'reset', checks: atLocal })
    return checks.map((check) => there.get(check) || here.get(check) || false)
  }

  /** Grants units of the share. The global store grants its own after this. */
  async function grant(checks: readonly GrantCheck[]): Promise<readonly Granted[]> {
    board.open(checks)
    const found = await answersOf(checks.filter(isHere), (some) => local.grant?.(ownOf(some)) ?? [])
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

/** Units with a home belong to the global store. */
const notHere: ChangeAtStore = async () => false

const noGrant: Granted = { units: 0, remaining: undefined, resetMs: undefined, settled: undefined }

function isHere({ policy }: Check): boolean {
  return policy.reach !== 'global'
}

function isGlobal(check: Check): boolean {
  return !isHere(check)
}

function localCheck<C extends Check>(check: C, { shares }: Region): C {
  return isDivided(check.policy) ? { ...check, limit: shares.guaranteed(check.limit) } : check
}

function fromLocal({ policy, limit }: Check, outcome: Outcome): Outcome {
  return { ...outcome, policy, limit }
}

/** Decides all or nothing: from this region's shares, then from the pool if a share refuses. */
async function decideInRegion(
  op: 'consume' | 'peek',
  checks: readonly Check[],
  region: Region,
  cancellation?: Cancellation,
): Promise<readonly Outcome[]> {
  const { central, shares, counters } = region
  const found = new Map<Check, Outcome>()
  const isTaking = op === 'consume'
  const here = checks.filter(isHere)
  const atGlobal = checks.filter(isGlobal)

  const isHereAllowed = await askHere(here)
  const refused = here.filter((check) => found.get(check)?.allowed === false)
  const borrowed = refused.filter(mayBorrow)
  if (refused.length > borrowed.length) {
    // The request is denied in any case, so it is unknown whether the pool would have allowed it.
    for (const check of borrowed) found.set(check, unknownOutcome(check))
    return denied()
  }
  const atCentral = [...borrowed, ...atGlobal]
  if (atCentral.length > 0 && !(await askCentral(atCentral))) return denied()
  // The local store takes all or nothing, so it has taken nothing of the others yet.
  const rest = here.filter((check) => !borrowed.includes(check))
  if (!isTaking || isHereAllowed || rest.length === 0) return allowed()
  return (await askHere(rest)) ? allowed() : denied()

  async function askHere(some: readonly Check[]): Promise<boolean> {
    const outcomes = await answersOf(some, () => {
      const own = some.map((check) => withoutStrikes(localCheck(check, region)))
      return region.local.apply(op, own, cancellation)
    })
    for (const [check, outcome] of outcomes) found.set(check, fromLocal(check, outcome))
    return [...outcomes.values()].every(({ allowed }) => allowed)
  }

  async function askCentral(some: readonly Check[]): Promise<boolean> {
    if (cancellation?.isUnwanted) return giveUp('nobody is waiting for the request')
    const { allowed, outcomes, retryAfterMs } = await central.decide(op, some)
    if (outcomes.length === 0) {
      if (atGlobal.length > 0) {
        return giveUp(
          "the global store, which decides policies with reach 'global', does not answer",
        )
      }
      // It is unknown when a pool that does not answer will be back.
      for (const check of some) {
        const share = found.get(check)
        if (share?.retryAfterMs === Number.POSITIVE_INFINITY) {
          found.set(check, { ...share, retryAfterMs })
        }
      }
      return false
    }
    for (const [index, check] of some.entries()) {
      found.set(check, joined(found.get(check), outcomes[index] ?? unknownOutcome(check)))
    }
    return allowed
  }

  function mayBorrow({ policy, limit, cost }: Check): boolean {
    const pool = isDivided(policy) ? shares.pool(limit) : 0
    return pool > 0 && cost <= pool
  }

  function allowed(): readonly Outcome[] {
    for (const check of isTaking ? here : []) {
      if (borrowed.includes(check)) counters.borrowed += check.cost
      else if (isDivided(check.policy)) counters.fromShare += check.cost
    }
    return outcomesOf()
  }

  async function denied(): Promise<readonly Outcome[]> {
    if (!isTaking) return outcomesOf()
    await giveAllBack()
    const strikes = here.filter((check) => isStriking(check) && found.get(check)?.allowed)
    if (strikes.length > 0) {
      const charged = region.local.apply('charge', strikes)
      const [struck] = await Promise.all([
        answersOf(strikes, () => region.local.apply('peek', strikes)),
        charged,
      ])
      for (const [check, outcome] of struck) found.set(check, outcome)
    }
    return outcomesOf()
  }

  async function giveUp(reason: string): Promise<never> {
    await giveAllBack()
    throw new SluiceError('SLUICE_STORE_CHECK', `the request was not decided: ${reason}`)
  }

  async function giveAllBack(): Promise<void> {
    const leases: Held[] = []
    const units: Held[] = []
    for (const [check, outcome] of found) {
      const { receipt, remaining, limit } = outcome
      if (!receipt) continue
      const left = remaining === undefined ? undefined : Math.min(limit, remaining + check.cost)
      found.set(check, { ...outcome, remaining: left, receipt: undefined })
      const held = { ...receipt.check, receipt }
      // A refused client does not wait for a remote store.
      if (receipt.home) void receipt.home.giveBack(held, notHere)
      else if (algorithmOf(held.policy).counts === 'leases') leases.push(held)
      else units.push(held)
    }
    await Promise.all([
      leases.length > 0 && region.local.change({ op: 'release', checks: leases }),
      units.length > 0 && region.local.change({ op: 'refund', checks: units }),
    ])
  }

  function outcomesOf(): readonly Outcome[] {
    return checks.map((check) => found.get(check) ?? unknownOutcome(check))
  }
}

/** Combines the outcomes of share and pool: a request takes all of its units from one of them. */
function joined(share: Outcome | undefined, pool: Outcome): Outcome {
  if (!share) return pool
  const earlier = pool.retryAfterMs <= share.retryAfterMs ? pool : share
  const remaining =
    pool.remaining === undefined ? share.remaining : Math.max(share.remaining ?? 0, pool.remaining)
  return { ...earlier, remaining }
}

function isStriking({ policy, cost }: Check): boolean {
  return policy.countDenied && algorithmOf(policy).counts === 'strikes' && cost > 0
}

const plain = new WeakMap<Policy, Policy>()

/** A penalty collects no strike from a share that refuses, since the pool may still allow. */
function withoutStrikes(check: Check): Check {
  if (!isStriking(check)) return check
  const policy = plain.get(check.policy) ?? { ...check.policy, countDenied: false }
  plain.set(check.policy, policy)
  return { ...check, policy }
}

/** Calls one of the stores with its checks, if there are any. Returns the answer to each check. */
async function answersOf<C, Answer>(
  checks: readonly C[],
  ask: (checks: readonly C[]) => MaybePromise<readonly Answer[]>,
): Promise<ReadonlyMap<C, Answer>> {
  const answers = checks.length === 0 ? [] : await ask(checks)
  const found = new Map<C, Answer>()
  for (const [index, answer] of answers.entries()) {
    const check = checks[index]
    if (check !== undefined) found.set(check, answer)
  }
  return found
}
