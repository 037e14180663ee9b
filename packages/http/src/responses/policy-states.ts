import { type Decision, fnv1a, type Policy, processWide, warnOnce } from '@sluice/core'
import { algorithmOf } from '@sluice/core/backend'
import { type Dialect, type DialectFormat, formats, type PolicyState } from '@sluice/headers'
import type { Scope } from '../request/exchange.ts'

interface Entry extends PolicyState {
  /** Set once all entries are known. */
  name: string
  readonly policy: Policy
  readonly scope: Scope
  readonly dialects: readonly Dialect[]
}

type Family = DialectFormat['family']

/** The policies that one guard adds to a response. */
export interface Applied {
  readonly decision: Decision
  /** The checks, in the order of the decision's outcomes. */
  readonly checks: readonly { readonly cost: number; readonly scope: Scope }[]
  readonly dialects: readonly Dialect[]
}

/** The states of all guards of one response, so that chained limiters report together. */
export class PolicyStates {
  #applied: readonly Applied[] = none
  /** Created on first read: a guard without headers rarely needs them. */
  #known: readonly Entry[] | undefined
  #dialects: readonly Dialect[] = none
  #isUniform = true

  /** The first guard that uses a family decides its dialect: no client could read two. */
  get dialects(): readonly Dialect[] {
    return this.#dialects
  }

  /** All states, if all dialects report all of them; otherwise `undefined`. */
  get uniformStates(): readonly PolicyState[] | undefined {
    return this.#isUniform ? this.#entries : undefined
  }

  add(applied: Applied): void {
    if (this.#applied.length === 0) {
      this.#dialects = applied.dialects
      // `push` would allocate room for 16 more, and nearly all responses have one guard.
      this.#applied = [applied]
      return
    }
    this.#speak(applied.dialects)
    this.#warnOfDuplicate(applied)
    this.#applied = [...this.#applied, applied]
    this.#known = undefined
  }

  get #entries(): readonly Entry[] {
    if (this.#known) return this.#known
    const first = this.#applied[0]
    const isAlone = first !== undefined && this.#applied.length === 1
    const entries = isAlone ? entriesOf(first) : this.#applied.flatMap(entriesOf)
    giveNames(entries)
    this.#known = entries
    return entries
  }

  /** Returns the states for the fields of a family, in the order of the guards. */
  states(family: Family): readonly PolicyState[] {
    return this.#entries.filter(({ dialects }) => speaks(dialects, family))
  }

  /** Returns the names of the visible policies that deny, and of the penalties among them. */
  violated(): { readonly violated: readonly string[]; readonly penalties: readonly string[] } {
    const denying = this.#entries.filter(
      ({ denied, hidden, dialects }) => denied && !hidden && dialects.length > 0,
    )
    const penalties = denying.filter(isPenalty)
    return { violated: namesOf(denying), penalties: namesOf(penalties) }
  }

  speaks(family: Family): boolean {
    return speaks(this.dialects, family)
  }

  /**
   * A request that passes the same limiter twice in one place is charged twice, which is a mistake.
   * It gets at most one strike, so limiters may share a penalty.
   */
  #warnOfDuplicate({ decision, checks }: Applied): void {
    const duplicate = decision.outcomes.find(({ policy }, index) =>
      this.#entries.some(
        (entry) =>
          entry.policy === policy &&
          !isPenalty(entry) &&
          (policy.named || entry.scope === checks[index]?.scope),
      ),
    )
    if (!duplicate) return
    warnOnce(
      `a request passed the same limiter twice (policy '${duplicate.policy.name}'), so it was counted twice: mount the limiter once, create two limiters, or remove combine: 'add' from a hook`,
      'limiter mounted twice',
    )
  }

  #speak(dialects: readonly Dialect[]): void {
    const spoken = this.#dialects
    if (haveSameFamilies(dialects, spoken)) return
    this.#isUniform = false
    const more = dialects.filter((dialect) => !speaks(spoken, formats[dialect].family))
    this.#dialects = [...spoken, ...more]
  }
}

const none: readonly never[] = []

function speaks(dialects: readonly Dialect[], family: Family): boolean {
  return dialects.some((dialect) => formats[dialect].family === family)
}

function haveSameFamilies(one: readonly Dialect[], other: readonly Dialect[]): boolean {
  return (
    one.length === other.length && one.every((dialect) => speaks(other, formats[dialect].family))
  )
}

/**
 * Gives each visible private policy a unique name, which list items need. Two states of one policy
 * have the same name and are listed once.
 */
function giveNames(entries: readonly Entry[]): void {
  const only = entries[0]
  if (only && entries.length === 1) {
    if (isPrivate(only)) only.name = scopedName(only.scope, only.policy.name)
    return
  }
  const unnamed = entries.filter(isPrivate)
  if (unnamed.length === 0) return
  const taken = new Set<string>()
  for (const { policy } of entries) if (policy.named) taken.add(policy.name)
  for (const [index, entry] of unnamed.entries()) {
    const { policy, scope } = entry
    const same = unnamed.findIndex((other) => other.policy === policy && other.scope === scope)
    const duplicate = same < index ? unnamed[same] : undefined
    entry.name = duplicate?.name ?? freeName(scopedName(scope, policy.name), taken)
  }
}

function namesOf(entries: readonly Entry[]): readonly string[] {
  return [...new Set(entries.map(({ name }) => name))]
}

function isPenalty({ policy }: Pick<Entry, 'policy'>): boolean {
  return algorithmOf(policy).counts === 'strikes'
}

function isPrivate({ policy }: Entry): boolean {
  return !policy.named && !policy.hidden
}

const maxNameLength = 64
const maxNames = 1_000
const namesByScope = processWide('@sluice/http/scope-names/1', () => new Map<string, string>())
const takenNames = processWide('@sluice/http/taken-names/1', () => new Set<string>())

/**
 * Returns the name of a private policy in headers: `default` in `GET /search/:q` is
 * `default-GET-search-q`. Two scopes never get the same name. There are as many scopes as routes;
 * if a caller keeps inventing them, the names start over.
 */
function scopedName(scope: Scope, name: string): string {
  if (scope === '') return name
  const place = `${name} ${scope}`
  const known = namesByScope.get(place)
  if (known !== undefined) return known
  if (namesByScope.size >= maxNames) {
    namesByScope.clear()
    takenNames.clear()
  }
  const derived = derivedName(name, scope)
  namesByScope.set(place, derived)
  takenNames.add(derived)
  return derived
}

function derivedName(name: string, scope: Scope): string {
  const readable = `${name}-${scope}`.replace(/[^A-Za-z0-9._]+/g, '-').replace(/-$/, '')
  if (readable.length <= maxNameLength && !takenNames.has(readable)) return readable
  const digest = fnv1a(scope).toString(36)
  return `${readable.slice(0, maxNameLength - digest.length - 1)}-${digest}`
}

function freeName(wanted: string, taken: Set<string>): string {
  let name = wanted
  for (let number = 2; taken.has(name); number += 1) name = `${wanted}-${number}`
  taken.add(name)
  return name
}

function entriesOf({ decision, checks, dialects }: Applied): readonly Entry[] {
  return decision.outcomes.map((outcome, index) => {
    const { policy, allowed, limit, remaining, resetMs, retryAfterMs } = outcome
    const { cost, scope = '' } = checks[index] ?? {}
    const { counts } = algorithmOf(policy)
    return {
      name: policy.name,
      policy,
      scope,
      dialects,
      // Strikes are not something that a client uses up.
      limit: counts === 'strikes' ? Number.POSITIVE_INFINITY : limit,
      // For leases, this is how long they run, which is not a window for clients.
      windowMs: counts === 'leases' ? undefined : policy.windowMs,
      remaining,
      resetMs,
      retryAfterMs,
      denied: !allowed,
      cost,
      hidden: policy.hidden,
      unit: policy.unit,
    }
  })
}
