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

/** A guard that can tell retries from other requests. */
export interface RetriedGuard<Native extends object> {
  readonly key: KeyResolver<Native>
  readonly decide: Decide<Native>
  readonly policies: readonly BoundPolicy<Native>[]
  readonly options: LimiterSettings
}

/** Retries with one key that are free in the longest window of the policies. */
const maxFreeRetries = 3

/**
 * Decides requests so that a retry costs nothing. A request that has passed leaves a mark, which
 * expires with the longest window. If there is a mark, one step asks the quotas for 0 units and the
 * mark for one more. So the mark bounds the free retries, even if many arrive at once. The others
 * are charged like any request.
 */
export function freeRetries<Native extends object>(guard: RetriedGuard<Native>): Decide<Native> {
  const { key: resolver, decide, policies, options } = guard
  // The guard's own limiter tells of the store; an unlimited policy counts nothing.
  const observers = observerList(options).flatMap(toldOfFailures)
  const marks = createCheckLimiter({ ...options, observers, limit: unlimited, window: '1s' })
  const policy = markPolicy(policies)

  const charged = ({ context, checks, timing }: Asked<Native>) => decide(context, checks, timing)

  /** A first attempt. Nobody waits for its mark. */
  const marked = (asked: Asked<Native>, mark: Check): MaybePromise<Found<Native>> =>
    andThen(charged(asked), (decided) => {
      if (!decided.decision.allowed) return decided
      const left = marks.chargeChecks([mark])
      const mayGiveBack = () => andThen(left, (known) => takenOff(mark, known))
      return { ...decided, mayGiveBack }
    })

  /** Removes a mark, unless the units of the first attempt pay for retries too. */
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
        // The mark was taken off, or has expired, since it was seen: this is a first attempt. The
        // store gets the calls in this order, and the first one is not awaited.
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
    // A request that asks for more is another one, or a cheap one would pay for dear ones.
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

/** The policy of the marks. Another guard has its own: it has to charge the same request too. */
function markPolicy<Native>(policies: readonly BoundPolicy<Native>[]): Policy {
  const limit = 1 + maxFreeRetries
  const window = `${Math.max(...policies.map(({ policy }) => policy.windowMs))}ms` as const
  // It has no say while the store is away.
  const options = { algorithm: 'fixed-window', limit, window, failureMode: 'open' } as const
  const id = [`~retries-${limit}`, ...policies.map(({ policy }) => policy.id)].join('~')
  return { ...definePolicy(options, 'idempotencyKey'), id }
}

/** Observers of the marks: they get the failures of a store that no other limiter notices. */
function toldOfFailures(observer: Observers<never>): readonly Observers<never>[] {
  const { onStoreError } = observer
  return onStoreError ? [{ onStoreError: onStoreError.bind(observer) }] : []
}

type Asked<Native extends object> = Pick<Found<Native>, 'context' | 'checks' | 'timing'>

/**
 * A retry takes no units again. But it waits in a queue and is in flight like any other request,
 * since these policies keep the pace. A blocked client stays blocked.
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

/** Compares with the limit applied: a process without the store has a share of the mark. */
function isMarked(seen: Outcome | undefined): boolean {
  return seen?.remaining !== undefined && seen.remaining < seen.limit
}

/** Takes the quotes off a key: many clients leave those of a structured field out. */
function unquoted(key: string): string {
  const [, tag = '', text] = /^(@header\/[^/]*\/)?\s*"((?:[^"\\]|\\["\\])*)"\s*$/.exec(key) ?? []
  return text === undefined ? key : tag + text.replace(/\\(.)/g, '$1')
}
