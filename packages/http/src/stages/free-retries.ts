import {
  andThen,
  type Check,
  createCheckLimiter,
  type Decision,
  definePolicy,
  type LimiterSettings,
  type MaybePromise,
  type Observers,
  type Outcome,
  observerList,
  type Policy,
  unlimited,
} from '@sluice/core'
import { algorithmOf, decisionOf } from '@sluice/core/backend'
import { joinKey } from '../keys/combine.ts'
import { type KeyResolver, resolveKey } from '../keys/resolver.ts'
import type { Decide, Found } from '../lifecycle/found.ts'
import type { BoundPolicy, PolicyCheck } from '../options/bound-policy.ts'
import { withoutStrike } from '../options/penalty.ts'

/** A guard that recognises retries. */
export interface RetriedGuard<Native extends object> {
  readonly key: KeyResolver<Native>
  readonly decide: Decide<Native>
  readonly policies: readonly BoundPolicy<Native>[]
  readonly options: LimiterSettings
}

/** Number of free retries per key in the longest window of the policies. */
const maxFreeRetries = 3

/**
 * Decides requests so that retries are free. A request that passes leaves a mark, which expires
 * with the longest window. If there is a mark, one call checks the quotas for 0 units and takes one
 * unit of the mark. So the mark bounds the free retries, even if many arrive at once.
 */
export function freeRetries<Native extends object>(guard: RetriedGuard<Native>): Decide<Native> {
  const { key: resolver, decide, policies, options } = guard
  // The guard's own limiter reports store failures; an unlimited policy counts nothing.
  const observers = observerList(options).flatMap(toldOfFailures)
  const marks = createCheckLimiter({ ...options, observers, limit: unlimited, window: '1s' })
  const policy = markPolicy(policies)

  const charged = ({ context, checks, timing }: Asked<Native>) => decide(context, checks, timing)

  /** Decides a first attempt. Nothing waits for its mark. */
  const marked = (asked: Asked<Native>, mark: Check): MaybePromise<Found<Native>> =>
    andThen(charged(asked), (decided) => {
      if (!decided.decision.allowed) return decided
      const left = marks.chargeChecks([mark])
      const mayGiveBack = () => andThen(left, (known) => takenOff(mark, known))
      return { ...decided, mayGiveBack }
    })

  /** Removes a mark, unless the first attempt's units pay for retries too. */
  function takenOff(mark: Check, left: Decision): MaybePromise<boolean> {
    void marks.refund(left)
    return andThen(marks.decide([{ ...mark, cost: 0 }]), ({ outcomes: [seen] }) => {
      if (!isMarked(seen)) return true
      return andThen(marks.chargeChecks([mark]), () => false)
    })
  }

  function replayed(asked: Asked<Native>, mark: Check): MaybePromise<Found<Native>> {
    const checks = asked.checks.map(free)
    return andThen(marks.decide([...checks, mark], asked.context.native), (decision) => {
      const seen = decision.outcomes.at(-1)
      if (seen?.allowed === false) return charged(asked)
      if (decision.allowed && isFirst(seen)) {
        // The mark was removed or has expired since: this is a first attempt. The store receives
        // the calls in this order, and the first one is not awaited.
        void marks.refund(decision)
        return marked(asked, mark)
      }
      // Without the store there may be no outcomes at all.
      if (seen === undefined) return { ...asked, checks, decision }
      const told = decisionOf(decision.outcomes.slice(0, -1), checks, decision.source)
      return { ...asked, checks, decision: { ...told, shadow: decision.shadow } }
    })
  }

  function markOf({ context: { request }, checks }: Asked<Native>, key: string): Check {
    const identities = new Set(checks.map((check) => check.key))
    // A different cost means a different request, or cheap requests would pay for expensive ones.
    const costs = checks.map(({ cost }) => cost).join()
    const parts = [request.method, request.path, key, costs, ...identities]
    return { policy, key: joinKey('@retry/', parts), cost: 1, limit: policy.limit }
  }

  return (context, checks, timing) => {
    const { native, request } = context
    return andThen(resolveKey(resolver, native, request), (key) => {
      const asked = { context, checks, timing }
      if (key === undefined) return charged(asked)
      const mark = markOf(asked, unquoted(key))
      return andThen(marks.decide([{ ...mark, cost: 0 }], native), ({ outcomes: [seen] }) =>
        isMarked(seen) ? replayed(asked, mark) : marked(asked, mark),
      )
    })
  }
}

/** The policy of the marks. Each guard has its own, since each must charge a request. */
function markPolicy<Native>(policies: readonly BoundPolicy<Native>[]): Policy {
  const limit = 1 + maxFreeRetries
  const window = `${Math.max(...policies.map(({ policy }) => policy.windowMs))}ms` as const
  // It is ignored while the store is unavailable.
  const options = { algorithm: 'fixed-window', limit, window, failureMode: 'open' } as const
  const id = [`~retries-${limit}`, ...policies.map(({ policy }) => policy.id)].join('~')
  return { ...definePolicy(options, 'idempotencyKey'), id }
}

/** Observers of the marks: they receive store failures that no other limiter notices. */
function toldOfFailures(observer: Observers<never>): readonly Observers<never>[] {
  const { onStoreError } = observer
  return onStoreError ? [{ onStoreError: onStoreError.bind(observer) }] : []
}

type Asked<Native extends object> = Pick<Found<Native>, 'context' | 'checks' | 'timing'>

/**
 * A retry takes no units again. But it queues and is in flight like any other request, since these
 * policies control the pace. A blocked client stays blocked.
 */
function free<Native>(check: PolicyCheck<Native>): PolicyCheck<Native> {
  if (algorithmOf(check.policy).counts === 'strikes') return withoutStrike(check)
  return keepsPace(check) ? check : { ...check, cost: 0 }
}

function keepsPace({ policy }: Check): boolean {
  const { counts, delayMs } = algorithmOf(policy)
  return counts === 'leases' || delayMs !== undefined
}

function isFirst(seen: Outcome | undefined): boolean {
  return seen?.remaining === (seen?.limit ?? 0) - 1
}

/** Compares with the applied limit: without the store, a process has only a share of the mark. */
function isMarked(seen: Outcome | undefined): boolean {
  return seen?.remaining !== undefined && seen.remaining < seen.limit
}

/** Removes the quotes of a key: many clients omit the quotes of a structured field. */
function unquoted(key: string): string {
  const [, tag = '', text] = /^(@header\/[^/]*\/)?\s*"((?:[^"\\]|\\["\\])*)"\s*$/.exec(key) ?? []
  return text === undefined ? key : tag + text.replace(/\\(.)/g, '$1')
}
