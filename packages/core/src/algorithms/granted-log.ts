import type { Algorithm, KeyState } from './algorithm.ts'
import { type KeyGrant, longestGrantMs, maxGrants } from './grant.ts'
import {
  type Check,
  recordedAt,
  type SlidingLog,
  type SlidingLogOptions,
  type SlidingLogSettings,
  slidingLog,
} from './sliding-log.ts'

/** A log with the grants of its key, ordered by their ends. */
export interface GrantedLog extends KeyState {
  readonly inner: SlidingLog
  grants: readonly KeyGrant[]
}

// These functions expect a log without grants. The ones needed are redefined below.
const { resetMs, delayMs, takeUsual, overflows, renew, block, ...traits } = slidingLog

/**
 * A `sliding-log` that counts held units too. The count is the units taken plus the units that
 * processes hold. Spent units are recorded when their grant is closed. A grant that is still open
 * at its end is then recorded in full.
 */
export const grantedLog: Algorithm<GrantedLog, SlidingLogSettings, SlidingLogOptions> = {
  ...traits,
  codec: {
    save: ({ limit, inner, grants }) => [
      limit,
      grants.length,
      ...grants.flatMap(({ id, units, endsAt }) => [id, units, endsAt]),
      ...slidingLog.codec.save(inner),
    ],
    load([limit = 0, count = 0, ...rest]) {
      const inner = slidingLog.codec.load(rest.slice(3 * count))
      if (!inner) return undefined
      const grants: KeyGrant[] = []
      for (let at = 0; at < 3 * count; at += 3) {
        const [id = 0, units = 0, endsAt = 0] = rest.slice(at, at + 3)
        grants.push({ id, units, endsAt })
      }
      return { limit, inner, grants }
    },
  },

  create: () => ({ limit: 0, inner: slidingLog.create(), grants: none }),

  clamp(state, check, now) {
    const inner = slidingLog.clamp(state.inner, check, now)
    // A key without grants, as for most requests, is not copied.
    if (state.grants.length === 0) return inner === state.inner ? state : { ...state, inner }
    const lastEnd = now + longestGrantMs(check.policy.windowMs)
    const grants = state.grants.map((grant) => ({
      ...grant,
      endsAt: Math.min(grant.endsAt, lastEnd),
    }))
    return afterLapses({ ...state, inner, grants }, check, now)
  },

  used: (state, check, now) => slidingLog.used(state.inner, check, now) + grantedUnits(state),

  msUntil(state, check, { now, target }) {
    const held = grantedUnits(state)
    if (target >= held) {
      return slidingLog.msUntil(state.inner, check, { now, target: target - held })
    }
    // All taken units must expire, then held ones, as if recorded at the end of their grant.
    let gone = held - target
    for (const { units, endsAt } of state.grants) {
      gone -= units
      if (gone > 0) continue
      return recordedAt(check, endsAt) + check.policy.windowMs - now
    }
    return 0
  },

  take(state, check, now) {
    state.limit = check.limit
    return slidingLog.take(state.inner, check, now)
  },

  giveBack: (state, held, now) => slidingLog.giveBack(state.inner, held, now),

  endsAt({ inner, grants }, check) {
    const last = grants.at(-1)
    const ofGrants = last ? recordedAt(check, last.endsAt) + check.policy.windowMs : 0
    return Math.max(slidingLog.endsAt(inner, check), ofGrants)
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
    const room = slidingLog.capacity(check) - grantedLog.used(state, check, now)
    const units = Math.min(check.cost, Math.floor(room / terms.divisor))
    if (units <= 0 || state.grants.length >= maxGrants) return { units: 0, settledAt }
    hold(state, { id: terms.id, units, endsAt: newEnd })
    return { units, settledAt }
  },

  afterReset({ limit, grants }, closed = []) {
    const gone = new Set(closed.map(({ id }) => id))
    const kept = grants.filter(({ id }) => !gone.has(id))
    return kept.length === 0 ? undefined : { limit, inner: slidingLog.create(), grants: kept }
  },

  fromTwin(check, report, now) {
    const { state, ...others } = slidingLog.fromTwin(check, report, now)
    return { state: { limit: check.limit, inner: state, grants: none }, ...others }
  },
}

const none: readonly KeyGrant[] = []

/**
 * Records the grants that have ended, each at its end. If units were recorded later than that, it
 * uses the time of the last unit: recorded times never decrease.
 */
function afterLapses(state: GrantedLog, check: Check, now: number): GrantedLog {
  const ended = state.grants.filter(({ endsAt }) => endsAt <= now)
  if (ended.length === 0) return state
  // A copy, since reads must not change the state.
  const inner = { ...state.inner, earlier: [...state.inner.earlier] }
  for (const { endsAt, units } of ended) {
    const at = Math.min(Math.max(inner.lastMs, endsAt), now)
    record(inner, { ...check, cost: units }, at)
  }
  return { ...state, inner, grants: state.grants.slice(ended.length) }
}

/** Records all units, even if the limit was lowered after they were granted. */
function record(inner: SlidingLog, check: Check, now: number): number {
  const limit = Math.max(check.limit, slidingLog.used(inner, check, now) + check.cost)
  return slidingLog.take(inner, { ...check, limit }, now)
}

/** Adds a grant. Processes may differ in how long their grants live. */
function hold(state: GrantedLog, grant: KeyGrant): void {
  const at = state.grants.findIndex(({ endsAt }) => endsAt > grant.endsAt)
  state.grants = state.grants.toSpliced(at < 0 ? state.grants.length : at, 0, grant)
}

function grantedUnits({ grants }: GrantedLog): number {
  return grants.reduce((sum, { units }) => sum + units, 0)
}
