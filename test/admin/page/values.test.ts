import { describe, expect, it } from 'vitest'
import { Day } from '../../../packages/admin/src/api/day.ts'
import { quantileMs, TrafficHistory } from '../../../packages/admin/src/api/traffic.ts'
import type { KeyPolicy, Policy } from '../../../packages/admin/src/page/api/types.ts'
import { byCause, verdictOn } from '../../../packages/admin/src/page/views/keys/verdict.ts'
import { duration, latency, percent } from '../../../packages/admin/src/page/words/format.ts'
import {
  entriesOf,
  faultsOf,
  formOf,
  keyText,
  limitOf,
  limitText,
  windowText,
} from '../../../packages/admin/src/page/words/policy-values.ts'

type Live = Parameters<TrafficHistory['note']>[0]

describe('the traffic', () => {
  /** What is known after samples, each at its time. */
  function trafficOf(...samples: readonly (readonly [allowed: number, at: number])[]) {
    const history = new TrafficHistory()
    for (const [allowed, at] of samples) history.note(live(allowed, at))
    return history.traffic
  }

  it('lists the ten policies that refuse most, of 1,000', () => {
    const history = new TrafficHistory()
    const names = Array.from({ length: 1_000 }, (_, each) => `policy ${each}`)
    const none = { shadowAllowed: 0, shadowDenied: 0, fallback: 0, nearMisses: 0 }
    for (const turn of [1, 2]) {
      const policies = names.map((policy, each) => {
        return { policy, allowed: 0, denied: each * turn, ...none }
      })
      history.note({ ...live(turn, turn * 5_000), policies })
    }
    const { policies = [], policiesInAll } = history.traffic ?? {}
    expect(policies.map(({ policy }) => policy)).toEqual(names.slice(-10).reverse())
    expect(policiesInAll).toBe(1_000)
  })

  it('covers one minute in numbers and 15 in charts', () => {
    const traffic = trafficOf(...Array.from({ length: 400 }, (_, i) => [i, i * 5_000] as const))
    expect(traffic?.points).toHaveLength(180)
    expect(traffic?.spanMs).toBe(60_000)
  })

  it('is the difference of two samples, as rates per second, and restarts when the clock is set back', () => {
    const traffic = trafficOf([90, 100_000], [130, 105_000], [170, 50_000], [210, 55_000])
    expect(traffic).toMatchObject({ spanMs: 5_000, requests: 40, denied: 0 })
    expect(traffic?.points).toEqual([[55, 8, 0, 0, 0]])
  })

  it('has a gap instead of partial counts if part of the fleet is not visible', () => {
    const history = new TrafficHistory()
    const note = (turn: number, processes: number, fallback: boolean) => {
      const sample = live(turn * processes * 10, turn * 5_000)
      history.note({ ...sample, processes, store: { ...sample.store, fallback } })
    }
    for (let turn = 0; turn < 4; turn += 1) note(turn, 2, false)
    // A report of the other process is still there when the outage begins.
    for (let turn = 4; turn < 40; turn += 1) note(turn, turn === 4 ? 2 : 1, true)
    expect(history.traffic).toMatchObject({ processes: 1, knownProcesses: 2 })
    const requests = history.traffic?.points.map(([, each]) => each)
    expect(requests?.slice(0, 5)).toEqual([4, 4, 4, null, null])
    expect(requests?.at(-1)).toBeNull()
    expect(history.traffic?.outages).toEqual([[20, 195]])
    for (let turn = 40; turn < 44; turn += 1) {
      note(turn, 2, false)
      // Until two of them can be compared, the last ones that could be are told.
      const known = { at: 195_000, processes: 1, spanMs: 45_000, requests: 90 }
      if (turn === 42) expect(history.traffic).toMatchObject(known)
    }
    // The first reports after an outage are not yet those of now.
    expect(history.traffic?.points.slice(-2)).toEqual([
      [210, null, null, null, null],
      [215, 4, 0, 0, 0],
    ])
    expect(history.traffic).toMatchObject({ spanMs: 5_000, requests: 20 })
  })
})

describe('the day', () => {
  const hourMs = 3_600_000
  const sample = (at: number, allowed: number) => {
    const of = { policy: 'api', allowed, denied: allowed / 10, nearMisses: 0 }
    return { at, policies: [{ ...of, shadowAllowed: 0, shadowDenied: 0, fallback: 0 }] }
  }
  /** A store that keeps reports as Redis does, and a clock. */
  const reports = new Map<string, string>()
  const fleet = {
    instances: 2,
    async shareReport({ member, ttlMs, text }: { member: string; ttlMs: number; text: string }) {
      const others = [...reports].flatMap(([other, each]) => (other === member ? [] : [each]))
      if (ttlMs > 1) reports.set(member, text)
      return others
    },
  }
  const hoursOf = (day: Day) => day.policies.flatMap(([, hours]) => [...hours])

  it('has the hours of a policy that had traffic, and forgets them after 24', () => {
    const day = new Day()
    for (let hour = 0; hour < 30; hour += 1) day.note(sample(hour * hourMs, hour * 100))
    expect(hoursOf(day)).toHaveLength(24)
    expect(hoursOf(day).at(-1)).toEqual([29, [110, 10, 0]])
    day.note({ at: 60 * hourMs, policies: [] })
    expect(day.policies).toEqual([])
  })

  it('continues in a process that starts after all others have stopped', async () => {
    const [old, young, late] = [new Day(), new Day(), new Day()]
    const minute = (turn: number) => 50 * hourMs + turn * 60_000
    old.note(sample(minute(0), 0))
    old.note(sample(minute(0), 500))
    for (let turn = 0; turn < 4; turn += 1) await old.share(fleet, minute(turn))
    // Two of them at once, of which neither hides from the other what the fleet knew.
    for (let turn = 9; turn < 12; turn += 1) {
      await Promise.all([young, late].map((day) => day.share(fleet, minute(turn))))
    }
    expect(hoursOf(young)).toEqual([[50, [550, 50, 0]]])
    expect(hoursOf(late)).toEqual(hoursOf(young))
    young.note(sample(minute(12), 40))
    young.note(sample(minute(12), 50))
    expect(hoursOf(young)).toEqual([[50, [561, 51, 0]]])
    expect([...reports.keys()].sort()).toEqual(['turn-0', 'turn-1'])
  })

  it('reads no report that another version or somebody else wrote, and sends a bounded one', async () => {
    const day = new Day()
    const policies = Array.from({ length: 2_000 }, (_, each) => each)
    const note = (at: number, allowed: number) => {
      const named = (each: number) =>
        sample(0, allowed).policies.map((of) => ({ ...of, policy: `policy-${each}` }))
      day.note({ at, policies: policies.flatMap(named) })
    }
    for (let hour = 0; hour < 24; hour += 1) note(hour * hourMs, hour * 1_000)
    const broken = ['{', '[[]]', '[7]', '[["api",[[23,1,null]]]]', '[["api",[[99,1,1,1]]]]']
    const sent: string[] = []
    const shareReport = async ({ text }: { text: string }) => {
      sent.push(text)
      return broken
    }
    for (const turn of [0, 1]) await day.share({ instances: 1, shareReport }, turn * 60_000)
    expect(day.policies).toHaveLength(2_000)
    expect(sent[1]?.length).toBeLessThan(65_536)
    expect(sent[1]?.length).toBeGreaterThan(30_000)
  })
})

describe('quantileMs', () => {
  it('interpolates within a bucket, and returns the last bound beyond it', () => {
    const buckets = [{ le: 0.001, count: 50 }, { le: 0.002, count: 50 }, { count: 0 }]
    expect(quantileMs(buckets, 0.5)).toBe(1)
    expect(quantileMs(buckets, 0.75)).toBe(1.5)
    expect(quantileMs([{ le: 1, count: 0 }], 0.5)).toBeUndefined()
    expect(quantileMs([{ le: 1, count: 0 }, { count: 4 }], 0.5)).toBe(1_000)
  })
})

describe('the form of a policy', () => {
  const policy: Policy = {
    ...{ name: 'burst', routes: ['*'], algorithm: 'sliding-log', limit: 20, window: '1s' },
    ...{ mode: 'enforce', key: 'ip', fields: ['limit', 'mode', 'share'] },
  }

  it('sends the fields that were changed, and no others', () => {
    const form = formOf(policy)
    expect(entriesOf(policy, form)).toEqual([])
    expect(entriesOf(policy, { ...form, limits: { '': '1,200' }, share: '50' })).toEqual([
      { policy: 'burst', field: 'limit', value: 1_200 },
      { policy: 'burst', field: 'share', value: 0.5 },
    ])
  })

  it('shows its window', () => {
    const texts = ['1m', 500, { every: 'month', zone: 'Europe/Rome' } as const, undefined]
    expect(texts.map(windowText)).toEqual([' / 1m', ' / 500 ms', ' / 1 month (Europe/Rome)', ''])
  })

  it('has a number for each tier, and keeps what is around them', () => {
    const schedule = { timeZone: 'UTC', default: 9, rules: [{ from: '08:00', limit: 'unlimited' }] }
    const limit = { tiers: { free: 600, 'pro 2': { schedule } }, by: 'plan', default: 60 }
    const tiered = { ...policy, limit }
    const form = formOf(tiered)
    const [night, day] = ['tiers pro 2 schedule default', 'tiers pro 2 schedule rules 0 limit']
    const limits = { 'tiers free': '600', [night]: '9', [day]: 'unlimited', default: '60' }
    expect(form.limits).toEqual(limits)
    const changed = { ...limits, 'tiers free': '700', [day]: '20' }
    const rules = [{ from: '08:00', limit: 20 }]
    const value = { ...limit, tiers: { free: 700, 'pro 2': { schedule: { ...schedule, rules } } } }
    expect(entriesOf(tiered, { ...form, limits: changed })).toMatchObject([{ value }])
    expect(entriesOf(tiered, form)).toEqual([])
    const wrong = { ...limits, default: 'x' }
    expect(Object.keys(faultsOf({ ...form, limits: wrong }))).toEqual(['limit default'])
  })

  it.each([
    ['burst', '0'],
    ['share', '101'],
    ['share', ''],
    ['until', '2001-01-01T00:00'],
  ])('says what is wrong with the %s %j', (field, value) => {
    expect(Object.keys(faultsOf({ ...formOf(policy), [field]: value }))).toEqual([field])
  })

  it('reads limits as people type them', () => {
    expect(['20', ' 1 000 ', 'unlimited'].map(limitOf)).toEqual([20, 1_000, 'unlimited'])
    expect(['-1', '2.5', '', 'many', '{}'].map(limitOf)).toEqual(Array(5).fill(undefined))
  })

  it('writes limits and keys as people read them', () => {
    const tiers = { tiers: { free: 600, pro: 6_000 }, by: 'plan', default: 60 }
    const texts = [20, 'unlimited', tiers].map(limitText)
    expect(texts).toEqual(['20', 'unlimited', '600 / 6,000 by plan'])
    const key = { firstOf: ['user', { all: ['tenant', 'ip'] }] }
    expect([undefined, 'ip', key].map(keyText)).toEqual(['ip', 'ip', 'user or tenant + ip'])
  })
})

it('has one verdict without a sum, its cause first, and the longest denial', () => {
  const of = { isPenalty: false, mode: 'enforce', allowed: true, used: 0, limit: 20 } as const
  const penalty: KeyPolicy = {
    ...{ ...of, policy: 'penalty', isPenalty: true, allowed: false, used: 20 },
    ...{ withinMs: 60_000, retryAfterMs: 240_000, denied: { '10m': 2_788 } },
  }
  const policies: readonly KeyPolicy[] = [
    { ...of, policy: 'burst', denied: { '10m': 0 } },
    { ...of, policy: 'login', allowed: false, retryAfterMs: 840_000, denied: { '10m': 408 } },
    penalty,
  ]
  expect(byCause(policies).map(({ policy }) => policy)).toEqual(['penalty', 'login', 'burst'])
  const known = { digest: '', found: true, inCode: [] }
  const words = (...changed: readonly KeyPolicy[]) =>
    verdictOn({ ...known, policies: [...policies.slice(0, 2), ...changed] }).words
  expect(words(penalty)).toBe(
    'Blocked by penalty for another 4 min: it blocks after 20 denied requests in 1 min. login denies it for another 14 min. Denials within eleven minutes: penalty 2,788, login 408.',
  )
  const never: KeyPolicy = { ...of, policy: 'login', allowed: false, denied: {} }
  const both = verdictOn({ ...known, policies: [penalty, never] })
  expect(both.words).toContain(' login denies it, and waiting cannot help.')
  // Of a penalty that only blocks by hand.
  const { retryAfterMs: _, withinMs: __, ...forEver } = penalty
  expect(words(forEver)).toMatch(/^Blocked by penalty, and waiting cannot help\. Denials within/)
  const unknown = policies.map(({ used: _, limit: __, allowed: ___, ...of }) => of)
  const away = verdictOn({ ...known, isAway: true, policies: unknown })
  expect(away.words).toMatch(/^Denied most by penalty lately\. .* The store is unavailable, so/)
  const inCode = [{ policy: 'reports', denied: 35 }]
  expect(verdictOn({ ...known, inCode, policies: policies.slice(0, 1) })).toEqual({
    tone: 'near',
    words:
      'No policy in the policy file denies it now. Policies set in the application’s code denied it within eleven minutes: reports 35.',
  })
})

it('writes numbers with their units', () => {
  expect([0, 0.0004, 0.034, 0.5].map(percent)).toEqual(['0%', '<0.1%', '3.4%', '50%'])
  const durations = [800, 2_400, 90_000, 86_400_000].map(duration)
  expect(durations).toEqual(['800 ms', '2.4 s', '1.5 min', '1 d'])
  expect([0.006, 0.25, 12, 2_000].map(latency)).toEqual(['6 µs', '0.25 ms', '12 ms', '2 s'])
})

function live(allowed: number, at: number): Live {
  const none = { queued: 0, skipped: 0, shed: 0, failed_open: 0, failed_closed: 0 }
  return {
    ...{ instance: 'a', scope: 'process', processes: 1, at, since: 0, policies: [], latency: [] },
    requests: { allowed, denied: 10, shadow_denied: 0, ...none },
    store: {
      ...{ breaker: 'closed', fallback: false, keysOwed: 0, instances: 1 },
      ...{ clockSkewSeconds: 0, deadlinesMissed: 0, failedCalls: 0 },
    },
  }
}
