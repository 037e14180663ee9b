import { unknownOutcome } from '../engine/outcome.ts'
import { unavailableRetryMs } from '../ledger/fallback.ts'
import type { Check, Held, ResetCheck } from '../model/check.ts'
import type { Policy } from '../model/policy.ts'
import type { Cancellation, Granted, Outcome, Store } from '../model/store.ts'
import { SluiceError } from '../options/errors.ts'
import type { MaybePromise } from '../runtime/maybe-promise.ts'
import type { Central } from './central.ts'
import type { RegionBoard } from './region-board.ts'
import { isDivided } from './regional-policies.ts'
import type { Shares } from './shares.ts'

/** Returns the calls of a store that decides in its region, and borrows from the global store. */
export function regionalCalls(
  central: Central,
  board: RegionBoard,
): Pick<Store, 'apply' | 'change' | 'grant'> {
  const { local, shares } = central.stores
  const ownOf = <C extends Check>(checks: readonly C[]) =>
    checks.map((check) => localCheck(check, shares))

  async function charge(checks: readonly Check[]): Promise<readonly Outcome[]> {
    const [here, there] = await Promise.all([
      answersOf(checks.filter(isHere), (some) => local.apply('charge', ownOf(some))),
      answersOf(checks.filter(isGlobal), (some) => central.decide('charge', some)),
    ])
    return checks.map((check) => {
      const found = here.get(check)
      return found ? fromLocal(check, found) : (there.get(check) ?? unknownOutcome(check))
    })
  }

  /** The global store first: while it is unavailable, nothing is reset. */
  async function reset(
    checks: readonly ResetCheck[],
    cancellation?: Cancellation,
  ): Promise<readonly boolean[]> {
    const atGlobal = checks.filter((check) => isDivided(check.policy) || isGlobal(check))
    const there = await answersOf(atGlobal, (some) => central.reset(some))
    if (atGlobal.length > 0) cancellation?.control?.sent()
    const atLocal = checks.filter(isHere)
    const here = await answersOf(atLocal, (some) =>
      local.change({ op: 'reset', checks: ownOf(some) }, cancellation),
    )
    if (atLocal.length > 0) board.tell({ op: 'reset', checks: atLocal })
    return checks.map((check) => there.get(check) || here.get(check) || false)
  }

  return {
    async apply(op, checks, cancellation) {
      board.open(checks)
      return op === 'charge' ? charge(checks) : decideInRegion(op, checks, central, cancellation)
    },
    async change(change, cancellation) {
      board.open(change.checks)
      if (change.op === 'reset') return reset(change.checks, cancellation)
      const changed = await local.change(change, cancellation)
      if (change.op === 'block') board.tell(change)
      return changed
    },
    /** Grants units of the share. The global store grants its own. */
    ...(local.grant && {
      async grant(checks) {
        board.open(checks)
        if (checks.some(isGlobal)) return checks.map(() => noGrant)
        return local.grant?.(ownOf(checks)) ?? []
      },
    }),
  }
}

const noGrant: Granted = { units: 0, remaining: undefined, resetMs: undefined, settled: undefined }

function isHere({ policy }: Check): boolean {
  return policy.reach !== 'global'
}

function isGlobal(check: Check): boolean {
  return !isHere(check)
}

function localCheck<C extends Check>(check: C, shares: Shares): C {
  return isDivided(check.policy) ? { ...check, limit: shares.guaranteed(check.limit) } : check
}

function fromLocal({ policy, limit }: Check, outcome: Outcome): Outcome {
  return { ...outcome, policy, limit }
}

/** Decides all or nothing: from this region's shares, then from the pool if a share refuses. */
async function decideInRegion(
  op: 'consume' | 'peek',
  checks: readonly Check[],
  central: Central,
  cancellation?: Cancellation,
): Promise<readonly Outcome[]> {
  const { local, shares } = central.stores
  const found = new Map<Check, Outcome>()
  const here = checks.filter(isHere)

  const isHereAllowed = await askHere(op, here)
  const refused = here.filter((check) => found.get(check)?.allowed === false)
  const borrowed = refused.filter(
    ({ policy, limit, cost }) => isDivided(policy) && cost <= shares.pool(limit),
  )
  if (refused.length > borrowed.length) {
    // The request is denied in any case, so it is unknown whether the pool would have allowed it.
    for (const check of borrowed) found.delete(check)
    return denied()
  }
  if (!(await askCentral([...borrowed, ...checks.filter(isGlobal)]))) return denied()
  // The local store takes all or nothing, so it has taken nothing of the others yet.
  const rest = here.filter((check) => !borrowed.includes(check))
  if (op === 'consume' && !isHereAllowed && !(await askHere(op, rest))) return denied()
  if (op === 'consume') central.count(here, borrowed)
  return outcomesOf()

  async function askHere(how: typeof op, some: readonly Check[]): Promise<boolean> {
    const outcomes = await answersOf(some, () => {
      const own = some.map((check) => withoutStrikes(localCheck(check, shares)))
      return local.apply(how, own, cancellation)
    })
    for (const [check, outcome] of outcomes) found.set(check, fromLocal(check, outcome))
    return [...outcomes.values()].every(({ allowed }) => allowed)
  }

  async function askCentral(some: readonly Check[]): Promise<boolean> {
    if (some.length > 0 && cancellation?.isUnwanted) return giveUp('nobody waits for it')
    const outcomes = await answersOf(some, () => central.decide(op, some))
    for (const check of some) {
      const [share, pool] = [found.get(check), outcomes.get(check)]
      if (pool) found.set(check, joined(share, pool))
      else if (isGlobal(check)) {
        const decides = "which decides policies with reach 'global'"
        return giveUp(`the global store, ${decides}, does not answer`)
      } else if (share?.retryAfterMs === Number.POSITIVE_INFINITY) {
        // It is unknown when a pool that does not answer will be back.
        found.set(check, { ...share, retryAfterMs: unavailableRetryMs })
      }
    }
    return some.every((check) => outcomes.get(check)?.allowed)
  }

  async function denied(): Promise<readonly Outcome[]> {
    if (op === 'peek') return outcomesOf()
    await giveAllBack()
    const strikes = here.filter((check) => isStriking(check) && found.get(check)?.allowed)
    if (strikes.length > 0) {
      await Promise.all([local.apply('charge', strikes), askHere('peek', strikes)])
    }
    return outcomesOf()
  }

  async function giveUp(reason: string): Promise<never> {
    await giveAllBack()
    throw new SluiceError('SLUICE_STORE_CHECK', `the request was not decided: ${reason}`)
  }

  async function giveAllBack(): Promise<void> {
    const units: Held[] = []
    for (const [check, { receipt, ...outcome }] of found) {
      if (!receipt) continue
      const { remaining, limit } = outcome
      const left = remaining === undefined ? undefined : Math.min(limit, remaining + check.cost)
      found.set(check, { ...outcome, remaining: left, receipt: undefined })
      const held = { ...receipt.check, receipt }
      // A refused client does not wait for a remote store.
      if (receipt.home) void receipt.home.giveBack(held, () => false)
      else units.push(held)
    }
    if (units.length > 0) await local.change({ op: 'refund', checks: units })
  }

  function outcomesOf(): readonly Outcome[] {
    return checks.map((check) => found.get(check) ?? unknownOutcome(check))
  }
}

/** Combines the outcomes of share and pool: a request takes all of its units from one of them. */
function joined(share: Outcome | undefined, pool: Outcome): Outcome {
  if (!share) return pool
  const earlier = pool.retryAfterMs <= share.retryAfterMs ? pool : share
  return { ...earlier, remaining: Math.max(share.remaining ?? 0, pool.remaining ?? 0) }
}

/** Only penalties count denials in a region. */
function isStriking({ policy, cost }: Check): boolean {
  return policy.countDenied && cost > 0
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
  const found = checks.flatMap((check, index) => {
    const answer = answers[index]
    return answer === undefined ? [] : [[check, answer] as const]
  })
  return new Map(found)
}
