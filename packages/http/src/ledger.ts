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
  }

  /** What the fields of a kind tell, in the order in which the guards were asked. */
  states(kind: FieldKind): readonly PolicyState[] {
    const names = this.#names()
    return this.#entries.flatMap(({ state, kinds }, index) =>
      kinds.has(kind) ? [{ ...state, name: names[index] ?? '' }] : [],
    )
  }

  /** The names of the visible policies that deny. */
  violated(): readonly string[] {
    const names = this.#names()
    const violated = this.#entries.flatMap(({ state, kinds }, index) =>
      state.denied && !state.hidden && kinds.size > 0 ? [names[index] ?? ''] : [],
    )
    return [...new Set(violated)]
  }

  /**
   * A name of its own for each policy that has none: in one list each item needs one. What is the same policy keeps the
   * same name, and is then listed once.
   */
  #names(): readonly string[] {
    const taken = new Set<string>()
    for (const { policy } of this.#entries) if (policy.named) taken.add(policy.name)
    const names: string[] = []
    for (const { policy, scope } of this.#entries) {
      const same = this.#entries.findIndex(
        (other) => other.policy === policy && other.scope === scope,
      )
      names.push(
        policy.named
          ? policy.name
          : (names[same] ?? freeName(scopedName(scope, policy.name), taken)),
      )
    }
    return names
  }
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
