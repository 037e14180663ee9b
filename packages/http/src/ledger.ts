import type { Decision, Outcome, Policy } from '@sluice/core'
import type { Dialect, PolicyState } from '@sluice/headers'
import { type Scope, scopedName } from './scope.ts'

/** A policy that was applied to the request, and in which kinds of fields clients are told of it. */
interface Entry {
  readonly policy: Policy
  readonly scope: Scope
  readonly state: Omit<PolicyState, 'name'>
  readonly kinds: ReadonlySet<FieldKind>
}

/** The dialects of one kind have field names in common, so a response carries one of each kind at most. */
export type FieldKind = 'ietf' | 'legacy'

/** What one guard adds to the ledger of a response. */
export interface Applied {
  readonly decision: Decision
  readonly scope: Scope
  readonly costs: ReadonlyMap<Policy, number>
  readonly dialects: readonly Dialect[]
}

/** All that the guards of one response have to tell, so that it is told as a whole: limiters can stand in a chain. */
export class Ledger {
  readonly #entries: Entry[] = []
  readonly #dialects = new Map<FieldKind, Dialect>()
  #names: readonly string[] = []

  /** The first guard to speak of a kind decides its dialect: no client could read two. */
  get dialects(): Iterable<readonly [FieldKind, Dialect]> {
    return this.#dialects
  }

  add({ decision, scope, costs, dialects }: Applied): void {
    const kinds = new Set(dialects.map(kindOf))
    for (const dialect of dialects) {
      if (!this.#dialects.has(kindOf(dialect))) this.#dialects.set(kindOf(dialect), dialect)
    }
    for (const outcome of decision.outcomes) {
      const { policy } = outcome
      const state = stateOf(outcome, costs.get(policy))
      this.#entries.push({ policy, scope, state, kinds })
    }
    this.#names = namesOf(this.#entries)
  }

  /** What the fields of a kind tell, in the order in which the guards were asked. */
  states(kind: FieldKind): readonly PolicyState[] {
    return this.#entries.flatMap(({ state, kinds }, index) =>
      kinds.has(kind) ? [{ ...state, name: this.#names[index] ?? '' }] : [],
    )
  }

  /** The names of the visible policies that deny. */
  violated(): readonly string[] {
    const violated = this.#entries.flatMap(({ state, kinds }, index) =>
      state.denied && !state.hidden && kinds.size > 0 ? [this.#names[index] ?? ''] : [],
    )
    return [...new Set(violated)]
  }
}

/**
 * A name of its own for each private policy that is shown: in one list each item needs one. What is the same policy has the same
 * name, and is then listed once.
 */
function namesOf(entries: readonly Entry[]): readonly string[] {
  const taken = new Set<string>()
  for (const { policy } of entries) if (policy.named) taken.add(policy.name)
  const names: string[] = []
  for (const { policy, scope } of entries) {
    if (policy.named || policy.hidden) {
      names.push(policy.name)
      continue
    }
    const same = entries.findIndex((other) => other.policy === policy && other.scope === scope)
    names.push(names[same] ?? freeName(scopedName(scope, policy.name), taken))
  }
  return names
}

function freeName(wanted: string, taken: Set<string>): string {
  let name = wanted
  for (let number = 2; taken.has(name); number += 1) name = `${wanted}-${number}`
  taken.add(name)
  return name
}

function kindOf(dialect: Dialect): FieldKind {
  return dialect.startsWith('legacy') ? 'legacy' : 'ietf'
}

function stateOf(outcome: Outcome, cost: number | undefined): Omit<PolicyState, 'name'> {
  const { policy, allowed, limit, remaining, resetMs, retryAfterMs } = outcome
  return {
    limit,
    windowMs: policy.windowMs,
    remaining,
    resetMs,
    retryAfterMs,
    denied: !allowed,
    cost,
    hidden: policy.hidden,
    unit: policy.unit,
  }
}
