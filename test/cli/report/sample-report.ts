import type { SimulationReport } from '@sluice/cli'

const hourMs = 3_600_000
const fromMs = Date.UTC(2026, 10, 20, 7)
const hours = 40

/** A client whose name does what it can to be more than a name. */
export const hostile = `</script><script>alert(1)</script><img src=x onerror=alert(1)>"'`

/** A report of 1,000 clients: client i has i requests in its busiest minute, and a tenth of that in its busiest second. */
export function sampleReport(): SimulationReport {
  const rates = Array.from({ length: 1_000 }, (_, index) => index + 1)
  const clientOf = (rate: number) => (rate === 1_000 ? hostile : `192.0.2.${rate}`)
  const ofWindow = (factor: number) => {
    const counts = new Map<number, number>()
    for (const rate of rates) {
      const scaled = Math.ceil(rate * factor)
      counts.set(scaled, (counts.get(scaled) ?? 0) + 1)
    }
    return [...counts]
  }
  const factors = [0.1, 0.5, 1, 3]
  const denied = rates.filter((rate) => rate > 600).toReversed()
  return {
    ...{ kind: 'sluice-simulation', version: 1, policyFile: 'sluice<b>.yaml' },
    clients: 'recorded',
    log: {
      ...{ files: ['access.log'], format: 'combined', lines: 500_502, requests: 500_500 },
      unreadable: {
        lines: 2,
        examples: [{ file: 'access.log', line: 7, text: hostile, reason: 'no time' }],
      },
      ...{ late: 1, fromMs, toMs: fromMs + hours * hourMs },
    },
    totals: {
      ...{ requests: 500_500, allowed: 400_000, denied: 100_500, delayed: 0, skipped: 12 },
      ...{ heldBack: 0, shadowDenied: 3, clients: 1_000, clientsDenied: 400, unlistedRequests: 0 },
    },
    policies: [
      {
        ...{ name: 'sustained', algorithm: 'sliding-log', limit: 600, windowMs: 60_000 },
        ...{ calendar: null, counts: 'units' },
        ...{ mode: 'enforce', checked: 500_500, denied: 100_500, identitiesDenied: 400 },
        ...{ nearMisses: 99, firstDenialMs: fromMs + 5_000, longestDenialMs: 61_000 },
      },
    ],
    routes: [
      {
        ...{ route: 'POST /login', requests: 1_000, denied: 900 },
        ...{ firstDenialMs: fromMs + 5_000, longestDenialMs: 61_000 },
      },
    ],
    hours: Array.from({ length: hours }, (_, hour) => ({
      startMs: fromMs + hour * hourMs,
      requests: 1_000 + hour,
      denied: hour % 7 === 0 ? 0 : hour * 10,
      clientsDenied: hour % 7,
    })),
    deniedClients: denied.map((rate) => ({
      ...{ client: clientOf(rate), requests: rate, denied: rate - 600, policies: ['sustained'] },
      ...{ firstDenialMs: fromMs, longestDenialMs: 61_000, longestDenialAtMs: fromMs },
    })),
    rates: {
      windowsMs: [1_000, 10_000, 60_000, hourMs],
      distribution: factors.map(ofWindow),
      clients: rates
        .slice(-500)
        .toReversed()
        .map((rate) => ({
          ...{ client: clientOf(rate), requests: rate * 2, denied: Math.max(0, rate - 600) },
          rates: factors.map((factor) => Math.ceil(rate * factor)),
        })),
    },
    notes: ['Bodies are not in the log: a cost of 1 was assumed.'],
  }
}
