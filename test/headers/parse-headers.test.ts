import type { IncomingHttpHeaders } from 'node:http'
import { parseHeaders } from '@sluice/headers'
import { describe, expect, it } from 'vitest'
import { nowMs } from './vectors.ts'

const values: Record<string, unknown> = { RateLimit: ['"a";r=1', undefined], 'Retry-After': 2 }
const node: IncomingHttpHeaders = { ratelimit: '"a";r=1', 'retry-after': '2' }

it.each<[string, Parameters<typeof parseHeaders>[0]]>([
  ['a Headers', new Headers({ RateLimit: '"a";r=1', 'Retry-After': '2' })],
  ['a record, in any case', { RATELIMIT: '"a";r=1', 'retry-After': '2', ratelimit: undefined }],
  ['the headers of a Node message', node],
  ['one whose values are no text', { get: (name: string): unknown => values[name] ?? null }],
])('the source of the headers may be %s', (_, source) => {
  const expected = { policies: [{ name: 'a', remaining: 1 }], retryAfterMs: 2000 }
  expect(parseHeaders(source)).toEqual(expected)
})

type Fields = Readonly<Record<string, string>>

describe('draft-8 to draft-11', () => {
  it.each<[string, Fields, object[]]>([
    [
      'joins policies and states by name',
      {
        'RateLimit-Policy': '"burst";q=10;w=1;pk=:QQ==:, "daily";q=1000;w=86400',
        RateLimit: '"daily";r=423;t=30211, "other";r=1, "burst";r=4;t=1',
      },
      [
        {
          ...{ name: 'burst', limit: 10, windowMs: 1000, remaining: 4, resetMs: 1000 },
          pk: Uint8Array.of(65),
        },
        { name: 'daily', limit: 1000, windowMs: 86_400_000, remaining: 423, resetMs: 30_211_000 },
        { name: 'other', remaining: 1 },
      ],
    ],
    [
      'joins items of one name in their order',
      { 'RateLimit-Policy': '"x";q=10;w=1, "x";q=20;w=1', RateLimit: '"x";r=4, "x";r=19' },
      [
        { name: 'x', limit: 10, windowMs: 1000, remaining: 4 },
        { name: 'x', limit: 20, windowMs: 1000, remaining: 19 },
      ],
    ],
    [
      'wins over the legacy fields beside it',
      { RateLimit: '"x";r=4', 'X-RateLimit-Remaining': '3' },
      [{ name: 'x', remaining: 4 }],
    ],
    [
      'has what is left from the legacy fields where it tells the sizes alone',
      {
        'RateLimit-Policy': '"burst";q=10;w=1, "day";q=1000;w=86400',
        'X-RateLimit-Limit': '1000',
        'X-RateLimit-Remaining': '0',
        'X-RateLimit-Reset': '60',
      },
      [
        { name: 'burst', limit: 10, windowMs: 1000 },
        { name: 'day', limit: 1000, windowMs: 86_400_000, remaining: 0, resetMs: 60_000 },
      ],
    ],
    [
      'gives way to the legacy fields when it is malformed',
      { 'RateLimit-Policy': '"a"b"; q=2', RateLimit: '"a"b"; r=1', 'X-RateLimit-Remaining': '3' },
      [{ name: undefined, remaining: 3 }],
    ],
  ])('%s', (_, fields, policies) => {
    expect(parseHeaders(fields).policies).toEqual(policies)
  })

  it('H35: reads what the draft after draft-11 says of partitions', () => {
    const fields = (partition: string) => ({
      'RateLimit-Policy': '"api";q=100;w=60;pk=:R0VUH2FsaWNl:',
      RateLimit: '"api";a=50;w=30;pk=:R0VUH2FsaWNl:',
      'RateLimit-Partition': partition,
    })
    const pk = new TextEncoder().encode('GET\u001falice')
    const policy = { name: 'api', limit: 100, windowMs: 60_000, remaining: 50, resetMs: 30_000, pk }
    const partition = { user_id: true, method: 'GET' }
    expect(parseHeaders(fields('"api";user_id;method="GET"')).policies).toEqual([
      { ...policy, partition },
    ])
    for (const malformed of ['"api";user_id=1', '"other";user_id', 'api;user_id', '"api']) {
      expect(parseHeaders(fields(malformed)).policies).toEqual([policy])
    }
  })
})

/** The fields of draft-3 to draft-6. */
const separate = (limit: string, remaining: string, reset: string): Fields => ({
  ...{ 'RateLimit-Limit': limit, 'RateLimit-Remaining': remaining, 'RateLimit-Reset': reset },
})

it.each<[string, Fields, object[]]>([
  [
    'finds the window in RateLimit-Policy',
    {
      'RateLimit-Policy': '10;w=1, 1000;w=86400',
      RateLimit: 'limit=1000, remaining=0, reset=30211',
    },
    [
      { limit: 10, windowMs: 1000 },
      { limit: 1000, windowMs: 86_400_000, remaining: 0, resetMs: 30_211_000 },
    ],
  ],
  [
    'puts a state that matches no policy first',
    { 'RateLimit-Policy': '10;w=1', 'RateLimit-Limit': '5' },
    [{ limit: 5 }, { limit: 10, windowMs: 1000 }],
  ],
  [
    'H33: reads the form of draft-3, with the window behind the limit',
    separate('100, 100;w=60', '50', '30'),
    [{ limit: 100, windowMs: 60_000, remaining: 50, resetMs: 30_000 }],
  ],
  ['ignores a malformed field alone', separate('-100', '?5', '30'), [{ resetMs: 30_000 }]],
  [
    'goes by the stricter of two lines',
    separate('10, 10', '5, 0', '5, 30'),
    [{ limit: 10, remaining: 0, resetMs: 30_000 }],
  ],
  ['keeps one without a state', { 'RateLimit-Policy': '10;w=1' }, [{ limit: 10, windowMs: 1000 }]],
])('draft-3 to draft-7: %s', (_, fields, policies) => {
  expect(parseHeaders(fields).policies).toEqual(policies)
})

describe('the legacy fields', () => {
  function resetMs(value: string): number | undefined {
    return parseHeaders({ 'X-RateLimit-Reset': value }, { nowMs }).policies[0]?.resetMs
  }

  it.each(['X-RateLimit', 'X-Rate-Limit', 'x-ratelimit'])('are read as %s-*', (prefix) => {
    const source = {
      ...{ [`${prefix}-Limit`]: '100', [`${prefix}-Remaining`]: '50' },
      [`${prefix}-Reset`]: '1795195831',
    }
    expect(parseHeaders(source, { nowMs }).policies).toEqual([
      { name: undefined, limit: 100, remaining: 50, resetMs: 30_750 },
    ])
  })

  it.each([
    ['a delta', '30', 30_000],
    ['a delta of zero', '0', 0],
    ['a delta with a fraction', '0.5', 500],
    ['the largest delta', '999999999', 999_999_999_000],
    ['an epoch', '1795195831', 30_750],
    ['an epoch with a fraction', '1795195831.5', 31_250],
    ['an epoch in the past', '1000000000', 0],
    ['an epoch in milliseconds', '1795195831000', 30_750],
    ['an ISO 8601 instant', '2026-11-20T17:30:31Z', 30_750],
    ['an ISO 8601 instant with an offset', '2026-11-20T18:30:31.5+01:00', 31_250],
  ])('read a reset as %s', (_, value, expected) => {
    expect(resetMs(value)).toBe(expected)
  })

  const noTimes = ['2026-99-99T00:00:00Z', '2026-11-20', '9'.repeat(16)]
  it.each(['', '-1', 'soon', '1e9', '0x5', 'NaN', ...noTimes])('ignore a reset of %j', (value) => {
    expect(resetMs(value)).toBeUndefined()
  })

  it('use the stricter of two lines', () => {
    const source = {
      'X-RateLimit-Limit': '100, 10',
      'X-RateLimit-Remaining': '5, 0',
      'X-RateLimit-Reset': '5, soon, 30',
    }
    expect(parseHeaders(source).policies).toEqual([
      { name: undefined, limit: 10, remaining: 0, resetMs: 30_000 },
    ])
    expect(resetMs('10, 1795195831')).toBe(30_750)
  })

  it.each<[string, Fields, object[]]>([
    ['are not there when only a name is', { 'x-ratelimit-resource': 'search' }, []],
    ['are floored, as for Reddit', { 'x-ratelimit-remaining': '98.7' }, [{ remaining: 98 }]],
  ])('%s', (_, fields, policies) => {
    expect(parseHeaders(fields).policies).toEqual(policies)
  })

  it('read times against the system clock unless told otherwise', () => {
    const inAnHour = String(Math.ceil(Date.now() / 1000) + 3600)
    const [policy] = parseHeaders({ 'X-RateLimit-Reset': inAnHour }).policies
    expect(policy?.resetMs).toBeGreaterThan(3_590_000)
    expect(policy?.resetMs).toBeLessThanOrEqual(3_601_000)
  })
})

const openai = (quota: string, limit: string, remaining: string, reset: string): Fields => ({
  [`x-ratelimit-limit-${quota}`]: limit,
  [`x-ratelimit-remaining-${quota}`]: remaining,
  [`x-ratelimit-reset-${quota}`]: reset,
})
const anthropic = (quota: string, remaining: string): Fields => ({
  [`anthropic-ratelimit-${quota}-limit`]: '50',
  [`anthropic-ratelimit-${quota}-remaining`]: remaining,
  [`anthropic-ratelimit-${quota}-reset`]: '2026-11-20T17:30:31Z',
})

describe('the fields of vendors', () => {
  const resetMs = 30_750
  const github = {
    ...{ 'x-ratelimit-limit': '5000', 'x-ratelimit-remaining': '0', 'x-ratelimit-used': '5000' },
    ...{ 'x-ratelimit-reset': '1795195831', 'x-ratelimit-resource': 'search' },
  }
  const azure = {
    ...{ 'x-ratelimit-remaining-requests': '79', 'x-ratelimit-reset-tokens': '55' },
    ...{ 'retry-after': '1', 'retry-after-ms': '23' },
  }
  const ofAnthropic = {
    ...{ ...anthropic('requests', '49'), ...anthropic('tokens', '0') },
    ...{ ...anthropic('input-tokens', '7'), ...anthropic('output-tokens', 'many') },
  }

  it.each<[string, Fields, object[], retryAfterMs?: number]>([
    ['GitHub', github, [{ name: 'search', limit: 5000, remaining: 0, resetMs }]],
    [
      'OpenAI',
      { ...openai('requests', '60', '59', '12ms'), ...openai('tokens', '150000', '0', '6m0s') },
      [
        { name: 'requests', limit: 60, remaining: 59, resetMs: 12 },
        { name: 'tokens', limit: 150_000, remaining: 0, resetMs: 360_000 },
      ],
    ],
    ['Azure, unknown', { ...openai('tokens', '-1', '-1', '0'), 'retry-after-ms': '0' }, []],
    [
      'Azure',
      azure,
      [
        { name: 'requests', remaining: 79 },
        { name: 'tokens', resetMs: 55_000 },
      ],
      23,
    ],
    [
      'Anthropic',
      ofAnthropic,
      [
        { name: 'requests', limit: 50, remaining: 49, resetMs },
        { name: 'tokens', limit: 50, remaining: 0, resetMs },
        { name: 'input-tokens', limit: 50, remaining: 7, resetMs },
        { name: 'output-tokens', limit: 50, resetMs },
      ],
    ],
    [
      'a gateway with a limit of its own',
      { RateLimit: '"gateway";r=4', 'x-ratelimit-remaining-tokens': '9' },
      [
        { name: 'gateway', remaining: 4 },
        { name: 'tokens', remaining: 9 },
      ],
    ],
  ])('are read: %s', (_vendor, fields, policies, retryAfterMs) => {
    expect(parseHeaders(fields, { nowMs })).toEqual({ policies, retryAfterMs })
  })

  it.each([
    ['7.66s', 7660],
    ['1h2m3.5s', 3_723_500],
    ['1m0.012s', 60_012],
    ['0.1ms', 1],
    ['5', 5000],
    ['0s', undefined],
    ['5x', undefined],
    ['s', undefined],
    ['-5s', undefined],
    ['1m 5s', undefined],
    [`${'9'.repeat(10)}s`, undefined],
  ])('read a duration of %j as %j ms', (text, resetMs) => {
    const source = { 'X-RateLimit-Remaining-Tokens': '1', 'X-RateLimit-Reset-Tokens': text }
    expect(parseHeaders(source, { nowMs }).policies).toEqual([
      { name: 'tokens', remaining: 1, resetMs },
    ])
  })

  it.each([
    ['60', '500', 60_000],
    ['1', '999', 999],
    ['2', '999', 2000],
    ['1', '5000', 5000],
    ['5', '-1', 5000],
    ['0', '0', 0],
    ['soon', '12.5', 13],
    ['5', 'soon', 5000],
  ])('derive one wait from Retry-After %j and Retry-After-Ms %j', (seconds, ms, expected) => {
    const source = { 'Retry-After': seconds, 'retry-after-ms': ms }
    expect(parseHeaders(source, { nowMs }).retryAfterMs).toBe(expected)
  })
})

const clocks = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY, Number.NaN]
it.each(clocks)('with a clock of %s ignore dates and epochs, but not delays', (nowMs) => {
  const date = 'Fri, 20 Nov 2026 12:00:30 GMT'
  const source = { 'Retry-After': date, 'X-RateLimit-Reset': '1795176030' }
  expect(parseHeaders(source, { nowMs })).toEqual({ policies: [], retryAfterMs: undefined })
  expect(parseHeaders({ 'Retry-After': '30' }, { nowMs }).retryAfterMs).toBe(30_000)
})
