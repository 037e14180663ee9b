import type { Check, Receipt } from './check.ts'
import { type Decision, decisionOf, withShadow } from './decision.ts'
import { divideChecks } from './enforcement.ts'
import { SluiceError } from './errors.ts'
import { type LimiterOptions, setUpLimiter } from './limiter-options.ts'
import { andThen, isPromise, type MaybePromise } from './maybe-promise.ts'
import { notify } from './observers.ts'
import { invalid, knownFields, show, wholeNumber } from './options.ts'
import type { Policy } from './policy.ts'
import { accessTo } from './resilience/access-to.ts'
import type { AskOp } from './resilience/fallback.ts'
import type { Caller } from './resilience/pending-ask.ts'
import type { StoreHealth } from './resilience/store-health.ts'
import { ShadowRun } from './shadow-run.ts'
import type { Outcome, StoreOp } from './store.ts'
import { warnOnce } from './warn.ts'

export interface CostOptions {
  /** Units that are asked for: a whole number ≥ 0. @default 1 */
  cost?: number
}

/** Policies + store + failure mode, free of HTTP. */
export interface Limiter {
  readonly policies: readonly Policy[]
  /** Takes `cost` units of every policy for `key`, or, when one denies, none. */
  consume(key: string, options?: CostOptions): Promise<Decision>
  /** Answers as `consume` would, for the policies that are enforced, and changes nothing. */
  peek(key: string, options?: CostOptions): Promise<Decision>
  /** Takes units without asking, for costs that are known afterwards. The decision is always allowed. */
  charge(key: string, options?: CostOptions): Promise<Decision>
  /**
   * Gives back what a decision took, as far as it still counts: at most once, and not after a reset or in a later window.
   * @param policies those that give back what is theirs, of the limiter's or the checks'. @default all
   * @returns whether it was asked of the store: false for a decision that took nothing or was refunded before
   */
  refund(decision: Decision, policies?: readonly Policy[]): Promise<boolean>
  /**
   * Ends the leases of a decision by `concurrency` policies, when its request is over; at most once. What its other policies
   * took stays taken.
   * @returns whether it was asked of the store: false for a decision without leases, or one that was released before
   */
  release(decision: Decision): Promise<boolean>
  /**
   * Prolongs the leases of a decision whose request is still under way: call it several times a `lease`.
   * @returns whether all of them still ran; false for a decision without leases too
   */
  renew(decision: Decision): Promise<boolean>
  /** Forgets all that `key` has taken. Rejects when the store failed, since nothing stands in for that. */
  reset(key: string): Promise<void>
  /**
   * `consume` for callers that resolve a key, a cost and a limit for each policy themselves. Synchronous when the store is.
   * The checks are trusted: build them from `policies`.
   */
  decide(checks: readonly Check[]): MaybePromise<Decision>
  /** `charge` for the same callers: takes the units of the checks without asking. */
  chargeChecks(checks: readonly Check[]): MaybePromise<Decision>
  /** How the store is for all limiters of this process that share it, and what has happened so far: for a health check, or metrics. */
  storeHealth(): StoreHealth
  /** Closes the store. */
  close(): Promise<void>
}

/** What was taken is given back once, by whichever limiter, and whoever holds copies of the decision. */
const spent = new WeakSet<Receipt>()

/**
 * Makes a limiter.
 * @example
 * const limiter = createLimiter({ limit: 100, window: '1m' })
 * const decision = await limiter.consume('user:42')
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function createLimiter(options: LimiterOptions): Limiter {
  const { policies, store, failureMode, deadlineMs, instances, fallback } = setUpLimiter(options)
  const access = accessTo(store, fallback)
  const caller: Caller = { store, failureMode, deadlineMs, instances, onFailure: reportFailure }
  if (options.onResilience) access.observe(options.onResilience)

  function ask(op: AskOp, checks: readonly Check[]): MaybePromise<Decision> {
    const limited = checks.every(isLimited) ? checks : checks.filter(isLimited)
    if (limited.length === 0) return decisionOf(checks.map(unlimitedOutcome), 'store')
    const decision = access.ask({ op, checks: limited, caller })
    return limited === checks ? decision : andThen(decision, (some) => withUnlimited(some, checks))
  }

  function reportFailure(op: StoreOp, error: unknown): void {
    const failure = storeError(error)
    if (options.onStoreError) {
      notify(options.onStoreError, { op, error: failure })
      return
    }
    warnOnce(
      `${failure.message}; failureMode '${failureMode}' decides instead (onStoreError tells of every failure)`,
      failure.code,
    )
  }

  function decide(checks: readonly Check[]): MaybePromise<Decision> {
    const { enforced, shadows } = divideChecks(checks)
    const decision = ask('consume', enforced)
    if (shadows.length === 0 && !options.onDecision) return decision
    return andThen(decision, (known) => {
      const decided = shadows.length === 0 ? known : followed(known, shadows)
      notify(options.onDecision, { decision: decided, checks: enforced })
      return decided
    })
  }

  /** A request that is denied would not exist for the policies in shadow either. Nobody waits for those. */
  function followed(decision: Decision, shadows: readonly Check[]): Decision {
    if (!decision.allowed) return decision
    const shadow = new ShadowRun(shadows.map((check) => ask('consume', [check])))
    const decided = withShadow(decision, shadow)
    if (!options.onShadow) return decided
    void andThen(shadow.decisions, (decisions) => {
      const told = shadows.filter((_, index) => decisions[index]?.outcomes.length === 1)
      if (told.length === 0) return
      notify(options.onShadow, { decision: decided, outcomes: shadow.outcomes, checks: told })
    })
    return decided
  }

  function chargeChecks(checks: readonly Check[]): MaybePromise<Decision> {
    const { enforced, shadows } = divideChecks(checks)
    return andThen(ask('charge', enforced), (decision) => {
      const charged = { ...decision, allowed: true, retryAfterMs: 0 }
      if (shadows.length === 0) return charged
      return withShadow(charged, new ShadowRun(shadows.map((check) => ask('charge', [check]))))
    })
  }

  /** Settles what a decision holds, and what its policies in shadow do, as soon as that is known. */
  async function settle(
    op: 'refund' | 'release',
    decision: Decision,
    isMeant: (check: Check) => boolean,
  ): Promise<boolean> {
    const own = settleOne(op, decision, isMeant)
    const shadows = decision.shadow ? await decision.shadow.decisions : []
    const others = shadows.map((shadow) => settleOne(op, shadow, isMeant))
    return (await Promise.all([own, ...others])).includes(true)
  }

  function settleOne(
    op: 'refund' | 'release',
    decision: Decision,
    isMeant: (check: Check) => boolean,
  ): MaybePromise<boolean> {
    const checks = heldBy(decision).filter(isMeant)
    if (checks.length === 0) return false
    for (const { receipt } of checks) spent.add(receipt)
    return access.settle(op, decision, checks, caller).then((outcomes) => outcomes !== undefined)
  }

  async function renewOne(decision: Decision): Promise<boolean> {
    const leases = heldBy(decision).filter(isLease)
    if (leases.length === 0) return false
    const outcomes = await access.settle('renew', decision, leases, caller)
    return outcomes?.every(({ allowed }) => allowed) ?? false
  }

  function checksOf(key: string, costs?: CostOptions): readonly Check[] {
    checkKey(key)
    const cost = costs === undefined ? 1 : costOf(costs)
    return policies.map((policy) => ({ policy, key, cost, limit: policy.limit }))
  }

  return {
    policies,
    decide,
    consume: (key, costs) => promised(() => decide(checksOf(key, costs))),
    peek: (key, costs) => promised(() => ask('peek', divideChecks(checksOf(key, costs)).enforced)),
    charge: (key, costs) => promised(() => chargeChecks(checksOf(key, costs))),
    chargeChecks,
    refund: (decision, only) =>
      settle('refund', decision, ({ policy }) => only?.some(({ id }) => id === policy.id) ?? true),
    release: (decision) => settle('release', decision, isLease),

    async renew(decision) {
      const own = renewOne(decision)
      const shadows = decision?.shadow ? await decision.shadow.decisions : []
      await Promise.all(shadows.map(renewOne))
      return own
    },

    async reset(key) {
      const checks = checksOf(key).filter(isLimited)
      try {
        if (checks.length > 0) await access.reset(checks, caller)
      } catch (error) {
        throw storeError(error)
      }
    },

    storeHealth: () => access.health(store),

    async close() {
      await store.close?.()
    },
  }
}

/** What a function comes to, as a promise: its own, where it gives one, since an async function would wrap it in another. */
function promised<T>(work: () => MaybePromise<T>): Promise<T> {
  try {
    const value = work()
    return isPromise(value) ? value : Promise.resolve(value)
  } catch (error) {
    return Promise.reject(error)
  }
}

function costOf(options: CostOptions): number {
  knownFields(options, 'options', ['cost'])
  const { cost = 1 } = options
  return wholeNumber(cost, { option: 'cost', code: 'SLUICE_COST_INVALID' }, { min: 0 })
}

function checkKey(key: unknown): void {
  if (typeof key === 'string' && key !== '') return
  throw new SluiceError('SLUICE_KEY_INVALID', `key must be a non-empty string, but is ${show(key)}`)
}

function isLimited({ limit }: Check): boolean {
  return limit !== Number.POSITIVE_INFINITY
}

function unlimitedOutcome({ policy, limit }: Check): Outcome {
  return {
    policy,
    allowed: true,
    limit,
    remaining: limit,
    resetMs: undefined,
    retryAfterMs: 0,
    delayMs: 0,
    receipt: undefined,
  }
}

/** Puts the outcomes of unlimited policies, which no store was asked about, in their places. */
function withUnlimited(decision: Decision, checks: readonly Check[]): Decision {
  if (decision.outcomes.length === 0) return decision
  const limited = decision.outcomes.values()
  const outcomes = checks.map((check) => {
    const outcome = isLimited(check) ? limited.next().value : undefined
    return outcome ?? unlimitedOutcome(check)
  })
  return { ...decision, outcomes }
}

function isLease({ policy }: Check): boolean {
  return policy.algorithm === 'concurrency'
}

/** What a decision took and has not given back, with the receipts of it. */
function heldBy(decision: Decision): readonly (Check & { receipt: Receipt })[] {
  if (!Array.isArray(decision?.outcomes)) {
    throw invalid({ option: 'decision' }, decision, 'what consume or charge has answered')
  }
  return decision.outcomes.flatMap(({ receipt }) =>
    receipt && !spent.has(receipt) ? [{ ...receipt.check, receipt }] : [],
  )
}

function storeError(error: unknown): SluiceError {
  if (error instanceof SluiceError) return error
  const reason = error instanceof Error ? error.message : show(error)
  return new SluiceError('SLUICE_STORE_FAILED', `the store did not decide: ${reason}`, {
    cause: error,
  })
}
