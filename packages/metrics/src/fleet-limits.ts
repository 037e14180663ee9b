import { type AppliedLimit, appliedLimitsOf } from '@sluice/core/backend'
import { type FleetStore, type FleetSubject, isNumber, list, rowsWithin } from './fleet-exchange.ts'

/** Maximum number of limits reported by one process, and by all processes of a fleet together. */
const maxLimits = 500
const maxLimitsOfFleet = 5_000
/** Maximum characters for the limits of one process. */
const maxReport = 20_480

/**
 * Shares limits that depend on the request with the other processes of a fleet, for tools that show
 * a key.
 */
export function fleetLimits(store: FleetStore): FleetSubject {
  const limits = appliedLimitsOf(store)
  return {
    report(instances) {
      const count = Math.ceil(Math.min(maxLimits, maxLimitsOfFleet / instances))
      return rowsWithin(maxReport, limits.newest(count))
    },
    hear: (heard) => limits.hear(heard.flatMap(({ part }) => list(part).flatMap(decoded))),
  }
}

/** Skips unreadable parts. `null` means no limit. */
function decoded(row: unknown): readonly AppliedLimit[] {
  const [id, limit, ageMs] = list(row)
  if (typeof id !== 'string' || !isNumber(ageMs)) return []
  if (limit === null) return [[id, Number.POSITIVE_INFINITY, ageMs]]
  return isNumber(limit) ? [[id, limit, ageMs]] : []
}
