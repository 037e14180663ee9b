import { parseHeaders, parseRateLimit, parseRateLimitPolicy } from '@sluice/headers'
import { describe, expect, it } from 'vitest'

describe('parsing RateLimit', () => {
  const state = (name: string, remaining: number, resetMs?: number, cost?: number) => {
    return { name, remaining, resetMs, cost }
  }

  it.each<[string, string, ...object[]]>([
    ['P01: what express-rate-limit sends', '"2-in-1min"; r=1; t=60', state('2-in-1min', 1, 60_000)],
    ['P03: no field with a name that is not escaped', '"a"b\\c"; r=1; t=60'],
    ['P03: nothing beside such a name', '"fine";r=1, "a"b\\c"; r=1; t=60'],
    ['P04: no dictionary', 'limit=100, remaining=50, reset=5'],
    ['H34: the draft after draft-11', '"a";a=95;w=60;c=5', state('a', 95, 60_000, 5)],
    ['H34: r and t before a and w', '"a";r=95;t=60;w=1', state('a', 95, 60_000)],
    ['H34: no cost below 0', '"a";a=95;w=60;c=-5;x', state('a', 95, 60_000)],
    ['H34: no item without a sound number', '"x";a=-1, "y";w=5, "z";a=1.5'],
    ['P07: no item whose partition key is not a Byte Sequence', '"x";r=1;pk="QQ=="'],
    ['P07: no date for a name', '@5;r=1'],
    ['P09: no field with a key in upper case', '"a";R=1'],
    ['the last of two parameters of one key, as RFC 9651 says', '"a";r=1;r=2', state('a', 2)],
    ['-0 as 0', '"a";r=-0;t=-0', state('a', 0, 0)],
    ['no integer of 16 digits', '"a";r=1000000000000000'],
    ['a name without its escapes', '"a\\"b\\\\c";r=1', state('a"b\\c', 1)],
  ])('reads %s', (_, value, ...states) => {
    expect(parseRateLimit(value)).toEqual(states)
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

  const noStates = ['"x";r=0;t=1.5', '"x";r=-1', '"x";t=5', '"x";r="1"', '"x";r', '"x";r=1;t=-1']
  const noNames = ['x;r=1', '100;r=1', '?1;r=1', ':QQ==:;r=1', '("x");r=1']
  it.each([...noStates, ...noNames])('P07: ignores the item %j alone', (item) => {
    expect(parseRateLimit(item)).toEqual([])
    expect(parseRateLimit(`${item}, "y";r=2`)).toEqual([state('y', 2)])
  })

  it('P11: reads two lines as one list', () => {
    const expected = [state('a', 1), state('b', 2)]
    expect(parseHeaders({ ratelimit: ['"a";r=1', '"b";r=2'] }).policies).toEqual(expected)
    const headers = new Headers()
    headers.append('RateLimit', '"a";r=1')
    headers.append('RateLimit', '"b";r=2')
    expect(parseHeaders(headers).policies).toEqual(expected)
  })
})

describe('parsing RateLimit-Policy', () => {
  const policy = (name: string | undefined, limit: number, windowMs: number) => {
    return { name, limit, windowMs }
  }
  const two = [policy('burst', 100, 60_000), policy('daily', 1000, 86_400_000)]
  const pk = Uint8Array.of(0x70, 0x7b, 0x1d, 0xb1, 0x16, 0xbc, 0xf7)
  const withPk = { ...policy('peruser', 100, 60_000), pk }

  it.each<[string, string, ...object[]]>([
    ['P02: a list without spaces', '"burst";q=100;w=60,"daily";q=1000;w=86400', ...two],
    ['P05: the integers of the older drafts', '100;w=60', policy(undefined, 100, 60_000)],
    ['P10: no unknown parameters', '"x";q=100;w=60;acme-shadow', policy('x', 100, 60_000)],
    ['P12: base64 with non-zero pad bits', '"peruser";q=100;w=60;pk=:cHsdsRa894==:', withPk],
  ])('reads %s', (_, value, ...policies) => {
    expect(parseRateLimitPolicy(value)).toEqual(policies)
  })

  const malformed = ['"x";w=60', '"x";q=1;w=0', '"x";q=1;w=1.5', '"x";q=-1', '"x";q=1;qu=bytes']
  const others = ['"x";q=1;pk=5', '100', '100;w=0', '-1;w=60', 'x;q=1']
  it.each([...malformed, ...others])('P07: ignores the item %j alone', (item) => {
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
