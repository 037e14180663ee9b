import { type FleetReport, memoryStore } from '@sluice/core'
import { collectMetrics, type FleetSnapshot, type InstrumentName } from '@sluice/metrics'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { patientLimiter } from '../support/patient-limiter.ts'

describe('fleetSnapshot', () => {
  it("sums the counts of a fleet's processes, including departed ones", async () => {
    const fleet = aFleet()
    const [one, two] = [fleet.join(), fleet.join()]
    for (let i = 0; i < 7; i += 1) await two.limiter.consume('ada')
    await one.limiter.consume('ada')
    expect(one.metrics.fleetSnapshot()).toMatchObject({ scope: 'process', processes: 1 })
    await fleet.pass(12_000)
    expect(checks(one)).toEqual({ allowed: 6, denied: 2 })
    expect(checks(two)).toEqual({ allowed: 6, denied: 2 })
    expect(one.metrics.fleetSnapshot()).toMatchObject({ scope: 'fleet', processes: 2 })
    expect(sumOf(one, 'sluice_decision_seconds')).toBe(8)
    expect(sumOf(one, 'sluice_used_ratio')).toBe(6)
    two.metrics.close()
    fleet.reports.clear()
    await fleet.pass(12_000)
    expect(one.metrics.fleetSnapshot()).toMatchObject({ scope: 'fleet', processes: 1 })
    expect(checks(one)).toEqual({ allowed: 6, denied: 2 })
  })

  it('ignores counts from before this process listened', async () => {
    const fleet = aFleet()
    const old = fleet.join()
    for (let i = 0; i < 4; i += 1) await old.limiter.consume('ada')
    await fleet.pass(12_000)
    const young = fleet.join()
    await fleet.pass(12_000)
    expect(checks(young)).toEqual({})
    for (let i = 0; i < 4; i += 1) await old.limiter.consume('ada')
    await fleet.pass(12_000)
    expect(checks(young)).toEqual({ allowed: 1, denied: 3 })
    expect(checks(old)).toEqual({ allowed: 5, denied: 3 })
  })

  it('only grows while reports arrive, and is complete afterwards', async () => {
    const fleet = aFleet()
    const [one, two] = [fleet.join(), fleet.join()]
    let last = 0
    for (let step = 0; step < 120; step += 1) {
      await two.limiter.consume(`user-${step}`)
      await fleet.pass(250)
      const { allowed = 0 } = checks(one)
      expect(allowed).toBeGreaterThanOrEqual(last)
      // The counts of a report come bit by bit: no two of them at once make a peak.
      expect(allowed - last).toBeLessThanOrEqual(4)
      last = allowed
    }
    await fleet.pass(12_000)
    expect(checks(one)).toEqual({ allowed: 120 })
  })

  it('reads no report that another version or somebody else wrote', async () => {
    const fleet = aFleet()
    const { metrics, limiter } = fleet.join()
    await limiter.consume('ada')
    const labels = ['api', 'allowed']
    const rows = (row: unknown) => [0, [], [row], [], []]
    const parts = [
      ...[null, 7, {}, [], ['now'], [0], [0, 7], [0, null, [[]]]],
      ...[[labels], [labels, 7], [labels, ['7']], [['api'], [7]], [labels, [7, 7]]].map(rows),
      rows([labels, [Number.NaN]]),
    ]
    for (const [index, part] of parts.entries()) {
      fleet.reports.set(`other-${index}`, JSON.stringify([`other-${index}`, [], part]))
    }
    await fleet.pass(12_000)
    expect(checks({ metrics })).toEqual({ allowed: 1 })
    fleet.reports.set('broken', '{')
    await fleet.pass(12_000)
    expect(checks({ metrics })).toEqual({ allowed: 1 })
  })

  it('takes bounded space for any number of policies: less busy ones are merged', async () => {
    const fleet = aFleet()
    const [one, two] = [fleet.join(), fleet.join()]
    for (let policy = 0; policy < 150; policy += 1) {
      const { limiter } = fleet.join(`policy-${policy}`, two.metrics)
      await limiter.consume('ada')
    }
    for (let i = 0; i < 5; i += 1) await two.limiter.consume('ada')
    await fleet.pass(12_000)
    for (const report of fleet.reports.values()) expect(report.length).toBeLessThan(42_000)
    const samples = samplesOf(one, 'sluice_checks_total')
    expect(samples.reduce((total, { value }) => total + value, 0)).toBe(155)
    const of = new Map(samples.map(({ labels, value }) => [labels.join(' '), value]))
    expect(of.get('api allowed')).toBe(5)
    expect(of.get('other allowed')).toBeGreaterThan(0)
  })
})

/** Processes that tell each other of what they count, and a clock that is set. */
function aFleet() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const reports = new Map<string, string>()
  const shareReport = async ({ member, text }: FleetReport) => {
    reports.set(member, text)
    return [...reports].flatMap(([other, report]) => (other === member ? [] : [report]))
  }
  const store = { ...memoryStore(), fleet: { instances: 1, shareReport } }
  return {
    reports,
    pass: (ms: number) => vi.advanceTimersByTimeAsync(ms),
    join(name = 'api', metrics = collectMetrics({ store })) {
      onTestFinished(() => metrics.close())
      const options = { name, limit: 5, window: '1h', store: memoryStore() } as const
      return { metrics, limiter: patientLimiter({ ...options, observers: [metrics] }) }
    },
  }
}

interface Process {
  readonly metrics: { fleetSnapshot(): FleetSnapshot }
}

function samplesOf({ metrics }: Process, name: InstrumentName) {
  return metrics.fleetSnapshot().families.find((family) => family.name === name)?.samples ?? []
}

function checks(process: Process): Record<string, number> {
  return Object.fromEntries(
    samplesOf(process, 'sluice_checks_total').flatMap(({ labels: [, result = ''], value }) =>
      value === 0 ? [] : [[result, value]],
    ),
  )
}

function sumOf(process: Process, name: InstrumentName): number {
  return samplesOf(process, name)
    .flatMap(({ buckets = [] }) => buckets)
    .reduce((total, count) => total + count, 0)
}
