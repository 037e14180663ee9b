import type { Check } from '../check.ts'
import { bindingIndex, type Decision } from '../decision.ts'
import { digestOf } from '../digest.ts'
import { areEnforced, divideChecks } from '../policy/divide-checks.ts'
import type { Policy } from '../policy/policy.ts'
import { andThen } from '../runtime/maybe-promise.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'
import type { Outcome, Store } from '../store.ts'
import type { JoinedObservers } from './join-observers.ts'
import { notify } from './notify.ts'
import type { DecisionEvent, EventSource } from './observers.ts'

/** The timing of one decision, from the question on. */
export class DecisionTiming {
  /** Time of the decision, and of the question before it is decided: ms of `performance.now()`. */
  atMs: number = monotonicMs()
  durationMs = 0
  /** True if the decision came at once, without a wait for the store. */
  isImmediate = true

  /** Notes that the decision is there. */
  end(): void {
    const nowMs = monotonicMs()
    this.durationMs = nowMs - this.atMs
    this.atMs = nowMs
  }
}

/** A decision to notify observers of. */
export interface ToldDecision<Request> extends EventSource<Request> {
  readonly decision: Decision
  /** All that was asked, policies in shadow too. */
  readonly checks: readonly Check[]
  readonly store: Store
  /** `undefined` if no policy was asked. */
  readonly timing: DecisionTiming | undefined
  /** @default false */
  readonly isQueued?: boolean | undefined
}

/**
 * Notifies observers of a decision, and of its policies in shadow as soon as they are known. Call
 * it only where somebody observes.
 */
export function notifyDecided<Request>(
  { onDecision, onShadow }: Pick<JoinedObservers<Request>, 'onDecision' | 'onShadow'>,
  decided: ToldDecision<Request>,
): void {
  if (onDecision) notify(onDecision, new DecidedEvent(decided))
  if (onShadow) notifyShadow(onShadow, decided)
}

/** The digest is computed only where somebody reads it. */
class DecidedEvent<Request> implements DecisionEvent<Request> {
  readonly decision: Decision
  readonly checks: readonly Check[]
  readonly request: Request | undefined
  readonly route: string | undefined
  readonly method: string | undefined
  readonly policy: Policy | undefined
  readonly key: string | undefined
  readonly answeredBy: string
  readonly atMs: number | undefined
  readonly durationMs: number
  readonly isQueued: boolean
  readonly #store: Store

  constructor(decided: ToldDecision<Request>) {
    const { decision, timing, checks } = decided
    this.decision = decision
    this.checks = areEnforced(checks) ? checks : divideChecks(checks).enforced
    this.request = decided.request
    this.route = decided.route
    this.method = decided.method
    const binding = bindingCheck(this)
    this.policy = binding?.policy
    this.key = binding?.identity ?? binding?.key
    this.answeredBy = answeredBy(decided)
    this.atMs = timing?.atMs
    this.durationMs = timing?.durationMs ?? 0
    this.isQueued = decided.isQueued ?? false
    this.#store = decided.store
  }

  get digest(): string | undefined {
    const binding = bindingCheck(this)
    return binding && digestOf(binding.key, this.#store)
  }
}

function bindingCheck({ checks, decision }: Pick<DecisionEvent, 'checks' | 'decision'>) {
  return checks[bindingIndex(decision.outcomes)]
}

function answeredBy<Request>({ decision, store, timing }: ToldDecision<Request>): string {
  if (decision.source !== 'store') return decision.source
  if (timing === undefined) return 'guard'
  const isRemote = store.submit !== undefined || store.denialTtlMs !== undefined
  if (isRemote && timing.isImmediate) {
    if (!decision.allowed) return 'denial-cache'
    if (decision.outcomes.some(({ policy }) => policy.maxUncounted > 0)) return 'async'
    return decision.outcomes.some(isLimited) ? 'prefetch' : 'guard'
  }
  return store.name ?? 'store'
}

function isLimited({ limit }: Outcome): boolean {
  return limit !== Number.POSITIVE_INFINITY
}

function notifyShadow<Request>(
  onShadow: NonNullable<JoinedObservers<Request>['onShadow']>,
  { decision, checks: asked, request, route, method }: ToldDecision<Request>,
): void {
  const run = decision.shadow
  if (!run) return
  void andThen(run.decisions, (decisions) => {
    const { shadows } = divideChecks(asked)
    const checks = shadows.filter((_, index) => decisions[index]?.outcomes.length === 1)
    if (checks.length === 0) return
    notify(onShadow, { decision, outcomes: run.outcomes, checks, request, route, method })
  })
}
