import type { Check } from '../check.ts'
import { bindingIndex, type Decision } from '../decision.ts'
import { digestOf } from '../digest.ts'
import { divideChecks } from '../policy/divide-checks.ts'
import type { Policy } from '../policy/policy.ts'
import { andThen } from '../runtime/maybe-promise.ts'
import type { Store } from '../store.ts'
import type { JoinedObservers } from './join-observers.ts'
import { notify } from './notify.ts'
import type { DecisionEvent, EventSource } from './observers.ts'

/** A decision to tell observers of. */
export interface Told<Request> extends EventSource<Request> {
  readonly decision: Decision
  /** All that was asked, policies in shadow too. */
  readonly checks: readonly Check[]
  readonly store: Store
  /** Timing of the decision; `undefined` if no policy was asked. */
  readonly timing: DecisionTiming | undefined
  /** @default false */
  readonly isQueued?: boolean | undefined
}

/** Timing of a decision. */
export interface DecisionTiming {
  /** Time of the decision: ms of `performance.now()`. */
  readonly atMs: number
  readonly durationMs: number
  /** True if the decision came at once, without a wait for the store. */
  readonly isImmediate: boolean
}

/** The digest is computed only where somebody reads it. */
class DecisionTold<Request> implements DecisionEvent<Request> {
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
  readonly #counted: string | undefined

  constructor(told: Told<Request>, checks: readonly Check[]) {
    const { decision, timing } = told
    const binding = checks[bindingIndex(decision.outcomes)]
    this.decision = decision
    this.checks = checks
    this.request = told.request
    this.route = told.route
    this.method = told.method
    this.policy = binding?.policy
    this.key = binding?.identity ?? binding?.key
    this.answeredBy = answeredBy(told)
    this.atMs = timing?.atMs
    this.durationMs = timing?.durationMs ?? 0
    this.isQueued = told.isQueued ?? false
    this.#store = told.store
    this.#counted = binding?.key
  }

  get digest(): string | undefined {
    return this.#counted === undefined ? undefined : digestOf(this.#counted, this.#store)
  }
}

function answeredBy<Request>({ decision, store, timing }: Told<Request>): string {
  if (decision.source !== 'store') return decision.source
  if (timing === undefined) return 'guard'
  const isRemote = store.submit !== undefined || store.denialTtlMs !== undefined
  if (isRemote && timing.isImmediate) return decision.allowed ? 'guard' : 'denial-cache'
  return store.name ?? 'store'
}

/**
 * Tells observers of a decision, and of its policies in shadow as soon as they are known. Call it
 * only where somebody observes.
 */
export function notifyDecided<Request>(
  { onDecision, onShadow }: Pick<JoinedObservers<Request>, 'onDecision' | 'onShadow'>,
  told: Told<Request>,
): void {
  const { decision, request, route, method } = told
  const { enforced, shadows } = divideChecks(told.checks)
  if (onDecision) notify(onDecision, new DecisionTold(told, enforced))
  const run = decision.shadow
  if (!onShadow || !run) return
  void andThen(run.decisions, (decisions) => {
    const checks = shadows.filter((_, index) => decisions[index]?.outcomes.length === 1)
    if (checks.length === 0) return
    notify(onShadow, { decision, outcomes: run.outcomes, checks, request, route, method })
  })
}
