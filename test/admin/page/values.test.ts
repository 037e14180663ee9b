import { describe, expect, it } from 'vitest'
import type { Live, Policy } from '../../../packages/admin/src/page/api/types.ts'
import { duration, latency, percent } from '../../../packages/admin/src/page/format.ts'
import { namedKeyOf } from '../../../packages/admin/src/page/views/keys/typed-key.ts'
import {
  LiveHistory,
  quantileMs,
} from '../../../packages/admin/src/page/views/overview/live-window.ts'
import {
  entriesOf,
  faultsOf,
  formOf,
  keyText,
  limitOf,
  limitText,
} from '../../../packages/admin/src/page/views/policies/policy-values.ts'

describe('the live counts', () => {
  it('are those since the start of the process, until a second answer is there', () => {
    const history = new LiveHistory()
    history.note(live('a', 90), 1_000)
    expect(history.window).toMatchObject({ isSinceStart: true, requests: 100, points: [] })
  })

  it('are differences of two answers of one process, as rates per second', () => {
    const history = new LiveHistory()
    history.note(live('a', 90), 1_000)
    history.note(live('b', 5_000), 2_000)
    history.note(live('a', 130), 3_000)
    const { window } = history
    expect(window).toMatchObject({ isSinceStart: false, spanMs: 2_000, requests: 40, denied: 0 })
    expect(window?.points).toEqual([
      { at: 3, requests: 20, denied: 0, shadowDenied: 0, nearMisses: 0 },
    ])
  })

  it('begin anew with a process that was started again', () => {
    const history = new LiveHistory()
    history.note(live('a', 90), 1_000)
    history.note({ ...live('a', 3), since: 2_000 }, 3_000)
    expect(history.window).toMatchObject({ isSinceStart: true, requests: 13 })
  })

  it('keep a minute for their numbers and five for the lines', () => {
    const history = new LiveHistory()
    for (let turn = 0; turn < 400; turn += 1) history.note(live('a', turn), turn * 2_000)
    expect(history.window?.points).toHaveLength(150)
    expect(history.window?.spanMs).toBe(60_000)
  })
})

describe('quantileMs', () => {
  it('lies within the bucket, by the share of what is in it', () => {
    const buckets = [{ le: 0.001, count: 50 }, { le: 0.002, count: 50 }, { count: 0 }]
    expect(quantileMs(buckets, 0.5)).toBe(1)
    expect(quantileMs(buckets, 0.75)).toBe(1.5)
  })

  it('is not known without counts, and is at least the last bound beyond it', () => {
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
    expect(entriesOf(policy, { ...form, limit: '1,200', share: '50' })).toEqual([
      { policy: 'burst', field: 'limit', value: 1_200 },
      { policy: 'burst', field: 'share', value: 0.5 },
    ])
  })

  it.each([
    ['limit', '-1'],
    ['limit', '2.5'],
    ['limit', ''],
    ['limit', 'many'],
    ['burst', '0'],
    ['share', '101'],
    ['share', ''],
    ['until', '2001-01-01T00:00'],
  ])('says what is wrong with the %s %j', (field, value) => {
    const faults = faultsOf({ ...formOf(policy), [field]: value })
    expect(Object.keys(faults)).toEqual([field])
  })

  it('reads limits as people type them', () => {
    expect(['20', ' 1 000 ', 'unlimited', '{"by":"plan","default":5}', '[]x'].map(limitOf)).toEqual(
      [20, 1_000, 'unlimited', { by: 'plan', default: 5 }, undefined],
    )
  })

  it('writes limits and keys as people read them', () => {
    const tiers = { tiers: { free: 600, pro: 6_000 }, by: 'plan', default: 60 }
    expect([20, 'unlimited', tiers].map(limitText)).toEqual([
      '20',
      'unlimited',
      '600 / 6,000 by plan',
    ])
    const key = { firstOf: ['user', { all: ['tenant', 'ip'] }] }
    expect([undefined, 'ip', key].map(keyText)).toEqual(['ip', 'ip', 'user or tenant + ip'])
  })
})

describe('namedKeyOf', () => {
  const names = ['user', 'tenant', 'ip']

  it('reads one value or several; a comma may stand within a value', () => {
    expect(namedKeyOf('user ada', names)).toEqual({ user: 'ada' })
    expect(namedKeyOf('tenant acme, ip 203.0.113.9', names)).toEqual({
      tenant: 'acme',
      ip: '203.0.113.9',
    })
    expect(namedKeyOf('user Lovelace, Ada', names)).toEqual({ user: 'Lovelace, Ada' })
    expect(namedKeyOf('user Lovelace,Ada', names)).toEqual({ user: 'Lovelace,Ada' })
    expect(namedKeyOf('tenant "a, user b" ,  user "c\\"d"', names)).toEqual({
      tenant: 'a, user b',
      user: 'c"d',
    })
  })

  it('reads an address alone, and a value in quotes', () => {
    expect(['203.0.113.9', '2001:db8::1'].map((typed) => namedKeyOf(typed, names))).toEqual([
      { ip: '203.0.113.9' },
      { ip: '2001:db8::1' },
    ])
    expect(namedKeyOf('user "ada, x"', names)).toEqual({ user: 'ada, x' })
  })

  it('knows no values of a digest', () => {
    expect(namedKeyOf('q83vEjRWeJCrze8SNFZ4kA', names)).toBeUndefined()
  })
})

it('writes numbers with their units', () => {
  expect([0, 0.0004, 0.034, 0.5].map(percent)).toEqual(['0%', '<0.1%', '3.4%', '50%'])
  expect([800, 2_400, 90_000, 86_400_000].map(duration)).toEqual([
    '800 ms',
    '2.4 s',
    '1.5 min',
    '1 d',
  ])
  expect([0.006, 0.25, 12, 2_000].map(latency)).toEqual(['6 µs', '0.25 ms', '12 ms', '2 s'])
})

function live(instance: string, allowed: number): Live {
  const none = { queued: 0, skipped: 0, shed: 0, failed_open: 0, failed_closed: 0 }
  return {
    ...{
      instance,
      scope: 'process',
      processes: 1,
      at: 60_000,
      since: 0,
      routes: [],
      policies: [],
      latency: [],
    },
    requests: { allowed, denied: 10, shadow_denied: 0, ...none },
    store: {
      ...{ breaker: 'closed', fallback: false, keysOwed: 0, instances: 1 },
      ...{ clockSkewSeconds: 0, deadlinesMissed: 0, failedCalls: 0 },
    },
  }
}
