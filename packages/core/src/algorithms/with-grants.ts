import type { Algorithm, CountingCheck, KeyState } from './algorithm.ts'
import { type KeyGrant, longestGrantMs, maxGrants } from './grant.ts'

/** A state with the grants of its key, ordered by their ends. */
export interface GrantedState<Inner extends KeyState = KeyState> extends KeyState {
  readonly inner: Inner
  grants: readonly KeyGrant[]
}

/**
 * Makes an algorithm count held units too. The count is the units taken plus the units that
 * processes hold. Spent units are recorded when their grant is closed. A grant that is still open
 * at its end is then recorded in full.
 */
export function withGrants<Inner extends KeyState, Settings extends object>(
  algorithm: Algorithm<Inner, Settings>,
): Algorithm<GrantedState<Inner>, Settings> {
  const { codec } = algorithm
  type State = GrantedState<Inner>
  type OwnCheck = CountingCheck<Settings>

  /** Returns the state of a key that has taken one unit. */
  function oneUnitAt(now: number, check: OwnCheck): Inner {
    const state = algorithm.create()
    algorithm.take(state, { ...check, cost: 1, limit: 1 }, now)
    return state
  }

  /**
   * Records the grants that have ended, each at its end. If units were recorded later than that, it
   * uses the time of the last unit: recorded times never decrease.
   */
  function afterLapses(state: State, check: OwnCheck, now: number): State {
    const ended = state.grants.filter(({ endsAt }) => endsAt <= now)
    if (ended.length === 0) return state
    // A copy, since reads must not change the state.
    const inner = codec.load(codec.save(state.inner)) ?? state.inner
    let lastMs = algorithm.endsAt(inner, check) - check.policy.windowMs
    for (const { endsAt, units } of ended) {
      lastMs = Math.min(Math.max(lastMs, endsAt), now)
      record(inner, { ...check, cost: units }, lastMs)
    }
    return { ...state, inner, grants: state.grants.slice(ended.length) }
  }

  /** Records all units, even if the limit was lowered after they were granted. */
  function record(inner: Inner, check: OwnCheck, now: number): number {
    const limit = Math.max(check.limit, algorithm.used(inner, check, now) + check.cost)
    return algorithm.take(inner, { ...check, limit }, now)
  }

  /** Adds a grant. Processes may differ in how long their grants live. */
  function hold(state: State, grant: KeyGrant): void {
    const at = state.grants.findIndex(({ endsAt }) => endsAt > grant.endsAt)
    state.grants = state.grants.toSpliced(at < 0 ? state.grants.length : at, 0, grant)
  }

  // These functions expect a state without grants. The ones needed are redefined below.
  const { resetMs, delayMs, takeUsual, overflows, renew, block, ...traits } = algorithm
  const self: Algorithm<State, Settings> = {
    ...traits,
    codec: {
      save: ({ limit, inner, grants }) => [
        limit,
        grants.length,
        ...grants.flatMap(({ id, units, endsAt }) => [id, units, endsAt]),
        ...codec.save(inner),
      ],
      load([limit = 0, count = 0, ...rest]) {
        const inner = codec.load(rest.slice(3 * count))
        if (!inner) return undefined
        const grants: KeyGrant[] = []
        for (let at = 0; at < 3 * count; at += 3) {
          const [id = 0, units = 0, endsAt = 0] = rest.slice(at, at + 3)
          grants.push({ id, units, endsAt })
        }
        return { limit, inner, grants }
      },
    },

    create: () => ({ limit: 0, inner: algorithm.create(), grants: none }),

    clamp(state, check, now) {
      const inner = algorithm.clamp(state.inner, check, now)
      // A key without grants, as for most requests, is not copied.
      if (state.grants.length === 0) return inner === state.inner ? state : { ...state, inner }
      const lastEnd = now + longestGrantMs(check.policy.windowMs)
      const grants = state.grants.map((grant) => ({
        ...grant,
        endsAt: Math.min(grant.endsAt, lastEnd),
      }))
      return afterLapses({ ...state, inner, grants }, check, now)
    },

    used: (state, check, now) => algorithm.used(state.inner, check, now) + grantedUnits(state),

    msUntil(state, check, { now, target }) {
      const held = grantedUnits(state)
      if (target >= held) {
        return algorithm.msUntil(state.inner, check, { now, target: target - held })
      }
      // All taken units must expire, then held ones, as if recorded at the end of their grant.
      let gone = held - target
      for (const { units, endsAt } of state.grants) {
        gone -= units
        if (gone > 0) continue
        const recorded = oneUnitAt(endsAt, check)
        return algorithm.msUntil(recorded, check, { now: endsAt, target: 0 }) + endsAt - now
      }
      return 0
    },

    take(state, check, now) {
      state.limit = check.limit
      return algorithm.take(state.inner, check, now)
    },

    giveBack: (state, held, now) => algorithm.giveBack(state.inner, held, now),

    endsAt({ inner, grants }, check) {
      const last = grants.at(-1)
      const ofGrants = last ? algorithm.endsAt(oneUnitAt(last.endsAt, check), check) : 0
      return Math.max(algorithm.endsAt(inner, check), ofGrants)
    },

    takeGrant(state, { terms, ...check }, now) {
      let settledAt: number | undefined
      const newEnd = now + terms.lifeMs
      for (const told of [...(terms.kept ?? []), ...terms.closed]) {
        const grant = state.grants.find(({ id }) => id === told.id)
        if (!grant) continue
        state.grants = state.grants.filter((held) => held !== grant)
        const left = 'left' in told ? Math.min(told.left, grant.units) : 0
        // A late or repeated call records nothing, since no more units are held than it names.
        const spent =
          'left' in told ? grant.units - told.left - told.freed : Math.min(told.spent, grant.units)
        if (left > 0) hold(state, { ...grant, units: left, endsAt: Math.max(grant.endsAt, newEnd) })
        if (spent > 0) settledAt = record(state.inner, { ...check, cost: spent }, now)
      }
      state.limit = check.limit
      const known = state.grants.find(({ id }) => id === terms.id)
      // The client sent the call twice.
      if (known) return { units: known.units, settledAt }
      const room = algorithm.capacity(check) - self.used(state, check, now)
      const units = Math.min(check.cost, Math.floor(room / terms.divisor))
      if (units <= 0 || state.grants.length >= maxGrants) return { units: 0, settledAt }
      hold(state, { id: terms.id, units, endsAt: newEnd })
      return { units, settledAt }
    },

    afterReset({ limit, grants }, closed = []) {
      const gone = new Set(closed.map(({ id }) => id))
      const kept = grants.filter(({ id }) => !gone.has(id))
      return kept.length === 0 ? undefined : { limit, inner: algorithm.create(), grants: kept }
    },

    fromTwin(check, report, now) {
      const { state, ...others } = algorithm.fromTwin(check, report, now)
      return { state: { limit: check.limit, inner: state, grants: none }, ...others }
    },
  }
  return self
}

const none: readonly KeyGrant[] = []

function grantedUnits({ grants }: GrantedState): number {
  let units = 0
  for (const grant of grants) units += grant.units
  return units
}
