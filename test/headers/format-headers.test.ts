import { type FormatOptions, formatHeaders, type PolicyState } from '@sluice/headers'
import { describe, expect, it } from 'vitest'
import { nowMs, statesOf, vectorOf } from './vectors.ts'

const default100 = { name: 'default', limit: 100, windowMs: 60_000 }
const perMinute: PolicyState = { ...default100, remaining: 50, resetMs: 30_000 }

function format(states: readonly PolicyState[], options: Partial<FormatOptions> = {}) {
  const lines = formatHeaders(states, {
    dialects: ['draft-11'],
    nowMs,
    rejected: states.some(({ denied }) => denied === true),
    ...options,
  })
  return lines.map(([name, value]) => `${name}: ${value}`)
}

const listed = 'RateLimit-Policy: "default";q=100;w=60'
const legacy = [
  'X-RateLimit-Limit: 100',
  'X-RateLimit-Remaining: 50',
  'X-RateLimit-Reset: 1795195831',
]

const second = { name: 's', limit: 10, windowMs: 1_000, remaining: 9, resetMs: 1_000 }
const minute = { name: 'm', limit: 10, windowMs: 60_000, remaining: 8, resetMs: 60_000 }
const trial = { name: 't', limit: 5000, remaining: 4000 }
const tighter = { ...minute, remaining: 2 }
const binding = { ...minute, limit: 3, remaining: 1 }

it.each([
  ['the one with less left', [second, minute], '10;w=60'],
  ['the one with less left, in any order', [minute, second], '10;w=60'],
  ['the one that resets last', [{ ...second, remaining: 8 }, minute], '10;w=60'],
  ['the one that denies', [minute, { ...second, remaining: 0, denied: true }], '10;w=1'],
  ['it in the place of the first', [second, { ...second, limit: 5 }, tighter], '10;w=60, 5;w=1'],
  ['the first, where another number binds', [second, minute, binding], '10;w=1, 3;w=60'],
  ['none without a window', [second, trial], '10;w=1'],
])('of several policies with one number lists %s', (_case, states, policies) => {
  for (const dialect of ['draft-7', 'draft-6'] as const) {
    const [line] = format(states, { dialects: [dialect] })
    expect(line).toBe(`RateLimit-Policy: ${policies}`)
  }
})

describe('the list of policies', () => {
  it('H02: lists one item of a name, the one with less remaining', () => {
    const tighter = { ...perMinute, limit: 10, remaining: 3 }
    expect(format([perMinute, tighter, { ...perMinute, remaining: undefined }])).toEqual([
      'RateLimit-Policy: "default";q=10;w=60',
      'RateLimit: "default";r=3;t=30',
    ])
  })

  it('lists the first of two equal items of a name', () => {
    const longer = { ...perMinute, windowMs: 120_000 }
    expect(format([perMinute, longer])[0]).toBe(listed)
  })

  it('does not replace a visible policy by a hidden or unlimited one with its name', () => {
    const hidden = { ...perMinute, remaining: 0, hidden: true }
    const unlimited = { ...perMinute, remaining: 0, limit: Number.POSITIVE_INFINITY }
    expect(format([hidden, unlimited, perMinute])).toEqual(format([perMinute]))
  })

  it('writes q, qu, w, pk and the vendor parameter in this order', () => {
    const state = { ...perMinute, unit: 'content-bytes', pk: Uint8Array.of(255), vendor: 'acme-x' }
    expect(format([state])).toEqual([
      'RateLimit-Policy: "default";q=100;qu="content-bytes";w=60;pk=:/w==:;acme-x',
      'RateLimit: "default";r=50;t=30;pk=:/w==:',
    ])
  })

  const noKeys = ['Acme', '1x', '', 'a b', 'x\r\ny', 'q', 'w', 'pk']
  it.each(noKeys)('leaves out the vendor parameter %j', (vendor) => {
    expect(format([{ ...perMinute, vendor }])).toEqual(format([perMinute]))
  })

  const badNames = ['naïve', 'tab\there', 'x\r\ny', '', '\u007f', 'snow ☃']
  it.each(badNames)(
    'leaves a policy called %j out of fields that carry names, and of no others',
    (name) => {
      const state = { ...perMinute, name }
      expect(format([state])).toEqual([])
      const lines = format([state], { dialects: ['legacy-github'] })
      expect(lines).toEqual([...legacy, 'X-RateLimit-Used: 50'])
    },
  )

  it('leaves out a policy whose unit cannot be written', () => {
    expect(format([{ ...perMinute, unit: 'bytes\n' }])).toEqual([])
  })
})

describe('the one policy of the older dialects', () => {
  const perDay = { name: 'daily', limit: 1000, windowMs: 86_400_000 }
  const daily: PolicyState = { ...perDay, remaining: 60, resetMs: 3_600_000 }

  const uploads = { ...daily, name: 'uploads', cost: 10 }
  const equal = { ...daily, remaining: 50 }
  const larger = { ...perMinute, limit: 200 }

  it.each<[string, readonly PolicyState[], limit: number]>([
    ['is the one that lets the fewest requests of this cost pass', [perMinute, uploads], 1000],
    ['is the one that resets last when both let equally many pass', [perMinute, equal], 1000],
    ['is the first when nothing else tells them apart', [perMinute, larger], 100],
    ['compares free requests as if they cost 1', [{ ...daily, cost: 0 }, perMinute], 100],
  ])('%s', (_, states, limit) => {
    expect(format(states, { dialects: ['legacy'] })[0]).toBe(`X-RateLimit-Limit: ${limit}`)
  })

  it('is absent when the denying one counts another unit', () => {
    const bytes = { ...perMinute, name: 'b', unit: 'content-bytes', remaining: 0, denied: true }
    const states = [perMinute, { ...bytes, retryAfterMs: 3_600_000 }]
    for (const dialect of ['draft-7', 'draft-6', 'legacy', 'legacy-delta'] as const) {
      expect(format(states, { dialects: [dialect] })).toEqual(['Retry-After: 3600'])
    }
    expect(format(states)).toContain('RateLimit: "default";r=50;t=30, "b";r=0;t=3600')
  })

  it('is accurate about a visible policy when only a hidden one denies', () => {
    const hidden = { ...daily, hidden: true, denied: true, retryAfterMs: 600_000 }
    const lines = format([perMinute, hidden], { dialects: ['legacy'] })
    expect(lines).toEqual([...legacy, 'Retry-After: 600'])
  })

  it('has no RateLimit-Policy when no window is known', () => {
    const lines = format([{ ...perMinute, windowMs: undefined }], { dialects: ['draft-7'] })
    expect(lines).toEqual(['RateLimit: limit=100, remaining=50, reset=30'])
  })
})

describe('GitHub’s extra fields', () => {
  it('H31: show the used units, and the policy', () => {
    const lines = format([perMinute], { dialects: ['legacy-github'] })
    const extra = ['X-RateLimit-Used: 50', 'X-RateLimit-Resource: default']
    expect(lines).toEqual([...legacy, ...extra])
  })

  it('add up with what the remaining says', () => {
    const states = statesOf(vectorOf('V31'))
    expect(format(states, { dialects: ['legacy-github'] })).toContain('X-RateLimit-Used: 100')
  })
})

describe('Retry-After', () => {
  const denied: PolicyState = { ...perMinute, remaining: 0, denied: true, retryAfterMs: 30_000 }

  it.each([-5000, Number.NaN, Number.NEGATIVE_INFINITY])('ignores a jitter of %d', (jitter) => {
    expect(format([denied], { retryJitterMs: jitter }).at(-1)).toBe('Retry-After: 30')
  })

  it('stays at its cap, whatever the jitter', () => {
    const states = statesOf(vectorOf('V23'))
    expect(format(states, { retryJitterMs: 99_999 }).at(-1)).toBe('Retry-After: 1728000')
  })

  it('is not sent when the request passes anyway', () => {
    const lines = format([denied], { rejected: false })
    expect(lines).toEqual([listed, 'RateLimit: "default";r=0;t=30'])
  })

  it('is not sent when no violated policy knows the wait', () => {
    expect(format([{ ...denied, retryAfterMs: undefined }])).toHaveLength(2)
    expect(format([{ ...denied, retryAfterMs: Number.NaN }])).toHaveLength(2)
  })
})

describe('numbers that a header cannot carry', () => {
  const max = 999_999_999_999_999

  it.each([
    ['a limit of 15 digits and a fraction', { limit: max + 0.5 }, `q=${max}`],
    ['a negative limit', { limit: -3 }, 'q=0'],
    ['a fractional limit', { limit: 2.9 }, 'q=2'],
    ['a limit of -0', { limit: -0 }, 'q=0'],
  ])('rounds %s', (_, change, expected) => {
    const [line] = format([{ ...perMinute, ...change }])
    expect(line).toBe(`RateLimit-Policy: "default";${expected};w=60`)
  })

  it.each([Number.NaN, Number.POSITIVE_INFINITY, 1e15, 1e21])('shows no limit of %d', (limit) => {
    const dialects = ['draft-11', 'draft-7', 'draft-6', 'legacy', 'legacy-delta'] as const
    for (const dialect of dialects) {
      expect(format([{ ...perMinute, limit }], { dialects: [dialect] })).toEqual([])
    }
  })

  it.each([
    [Number.POSITIVE_INFINITY, 100],
    [101, 100],
    [-1, 0],
    [Number.NEGATIVE_INFINITY, 0],
  ])('clamps a remaining of %d to %d', (remaining, shown) => {
    expect(format([{ ...perMinute, remaining }])[1]).toBe(`RateLimit: "default";r=${shown};t=30`)
  })

  it.each([Number.NaN, Number.POSITIVE_INFINITY, 1e18])('leaves out a time of %d ms', (timeMs) => {
    const state = { ...perMinute, windowMs: timeMs, resetMs: timeMs }
    const draft = ['RateLimit-Policy: "default";q=100', 'RateLimit: "default";r=50']
    const lines = format([state], { dialects: ['draft-11', 'legacy'] })
    expect(lines).toEqual([...draft, ...legacy.slice(0, 2)])
  })

  it.each([Number.NaN, Number.POSITIVE_INFINITY, -1e15])('sends no epoch at a now of %d', (now) => {
    const lines = format([perMinute], { dialects: ['legacy'], nowMs: now })
    expect(lines).toEqual(legacy.slice(0, 2))
  })
})
