import { parseHeaders, parseRateLimit, parseRateLimitPolicy } from '@sluice/headers'
import { describe, expect, it } from 'vitest'

describe('parsing RateLimit', () => {
  it('P01: reads what express-rate-limit sends', () => {
    expect(parseRateLimit('"2-in-1min"; r=1; t=60')).toEqual([
      { name: '2-in-1min', remaining: 1, resetMs: 60_000 },
    ])
  })

  it('P03: ignores the whole field when a name is not escaped', () => {
    expect(parseRateLimit('"a"b\\c"; r=1; t=60')).toEqual([])
    expect(parseRateLimit('"fine";r=1, "a"b\\c"; r=1; t=60')).toEqual([])
  })

  it('P04: reads a draft-7 dictionary where the field is no list', () => {
    const value = 'limit=100, remaining=50, reset=5'
    expect(parseRateLimit(value)).toEqual([])
    expect(parseHeaders({ RateLimit: value }).policies).toEqual([
      { name: undefined, limit: 100, remaining: 50, resetMs: 5000 },
    ])
  })

  it.each([
    'limit=100',
    'remaining=1, reset=1',
    'limit=100, remaining=50',
    'limit=-1, reset=5',
    'limit=1, remaining=x, reset=5',
    'limit=1.5, reset=5',
    'limit=(1 2), reset=5',
    'limit=100, remaining=50, reset=5,',
    '"x" r=1',
    ';',
  ])('P04: ignores %j, which is neither', (value) => {
    expect(parseHeaders({ RateLimit: value }).policies).toEqual([])
  })

  it.each(['"x";r=0;t=1.5', '"x";r=-1', '"x";t=5', '"x";r="1"', '"x";r', '"x";r=1;t=-1'])(
    'P07: ignores the item %j alone',
    (item) => {
      expect(parseRateLimit(item)).toEqual([])
      expect(parseRateLimit(`${item}, "y";r=2`)).toEqual([{ name: 'y', remaining: 2 }])
    },
  )

  it.each(['x;r=1', '100;r=1', '?1;r=1', ':QQ==:;r=1', '("x");r=1', '@5;r=1'])(
    'P07: ignores the item %j, whose name is not a String',
    (item) => {
      expect(parseRateLimit(item)).toEqual([])
    },
  )

  it('H34: reads the parameters of the draft after draft-11', () => {
    const state = { name: 'default', remaining: 95, resetMs: 60_000, cost: 5 }
    expect(parseRateLimit('"default";a=95;w=60;c=5')).toEqual([state])
    expect(parseRateLimit('"default";r=95;t=60;w=1')).toEqual([{ ...state, cost: undefined }])
    expect(parseRateLimit('"default";a=95;w=60;c=-5;x')).toEqual([{ ...state, cost: undefined }])
    expect(parseRateLimit('"x";a=-1, "y";w=5, "z";a=1.5')).toEqual([])
  })

  it('P07: ignores an item whose partition key is not a Byte Sequence', () => {
    expect(parseRateLimit('"x";r=1;pk="QQ=="')).toEqual([])
  })

  it('P09: ignores the field when a key is in upper case', () => {
    expect(parseRateLimit('"a";R=1')).toEqual([])
  })

  it('P11: reads two lines as one list', () => {
    const expected = [
      { name: 'a', remaining: 1 },
      { name: 'b', remaining: 2 },
    ]
    expect(parseHeaders({ ratelimit: ['"a";r=1', '"b";r=2'] }).policies).toEqual(expected)
    const headers = new Headers()
    headers.append('RateLimit', '"a";r=1')
    headers.append('RateLimit', '"b";r=2')
    expect(parseHeaders(headers).policies).toEqual(expected)
  })

  it('takes the last of two parameters of one key, as RFC 9651 says', () => {
    expect(parseRateLimit('"a";r=1;r=2')).toEqual([{ name: 'a', remaining: 2 }])
  })

  it('reads -0 as 0, and ignores integers of 16 digits', () => {
    expect(parseRateLimit('"a";r=-0;t=-0')).toEqual([{ name: 'a', remaining: 0, resetMs: 0 }])
    expect(parseRateLimit('"a";r=1000000000000000')).toEqual([])
  })

  it('unescapes names', () => {
    expect(parseRateLimit('"a\\"b\\\\c";r=1')).toEqual([{ name: 'a"b\\c', remaining: 1 }])
  })
})

describe('parsing RateLimit-Policy', () => {
  it('P02: reads a list without spaces', () => {
    expect(parseRateLimitPolicy('"burst";q=100;w=60,"daily";q=1000;w=86400')).toEqual([
      { name: 'burst', limit: 100, windowMs: 60_000 },
      { name: 'daily', limit: 1000, windowMs: 86_400_000 },
    ])
  })

  it('P05: reads the integers of the older drafts', () => {
    expect(parseRateLimitPolicy('100;w=60')).toEqual([
      { name: undefined, limit: 100, windowMs: 60_000 },
    ])
  })

  it('P10: ignores unknown parameters', () => {
    expect(parseRateLimitPolicy('"x";q=100;w=60;acme-shadow')).toEqual([
      { name: 'x', limit: 100, windowMs: 60_000 },
    ])
  })

  it('P12: accepts base64 with non-zero pad bits', () => {
    expect(parseRateLimitPolicy('"peruser";q=100;w=60;pk=:cHsdsRa894==:')).toEqual([
      {
        name: 'peruser',
        limit: 100,
        windowMs: 60_000,
        pk: Uint8Array.of(0x70, 0x7b, 0x1d, 0xb1, 0x16, 0xbc, 0xf7),
      },
    ])
  })

  it.each([
    '"x";w=60',
    '"x";q=1;w=0',
    '"x";q=1;w=1.5',
    '"x";q=-1',
    '"x";q=1;qu=bytes',
    '"x";q=1;pk=5',
    '100',
    '100;w=0',
    '-1;w=60',
    'x;q=1',
  ])('P07: ignores the item %j alone', (item) => {
    expect(parseRateLimitPolicy(item)).toEqual([])
    expect(parseRateLimitPolicy(`${item}, "y";q=2;qu="content-bytes"`)).toEqual([
      { name: 'y', limit: 2, unit: 'content-bytes' },
    ])
  })

  it.each(['', '   ', undefined])('knows no policy in %j', (value) => {
    expect(parseRateLimitPolicy(value)).toEqual([])
    expect(parseRateLimit(value)).toEqual([])
  })
})
