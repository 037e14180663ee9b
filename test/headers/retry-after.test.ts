import { mergeRetryAfter, parseRetryAfter } from '@sluice/headers'
import { describe, expect, it } from 'vitest'

const nowMs = Date.UTC(2026, 10, 20, 12, 0, 0, 250)

describe('parsing Retry-After', () => {
  it.each([
    ['2', 2000],
    ['0', 0],
    [' 60 ', 60_000],
    ['007', 7000],
    ['9'.repeat(400), Number.MAX_SAFE_INTEGER],
    ['2, 30', 30_000],
    ['30.5', 30_500],
    ['0.5', 500],
    ['soon, 30', 30_000],
    ['30, Fri, 20 Nov 2026 12:00:10 GMT', 30_000],
    ['Fri, 20 Nov 2026 12:00:30 GMT, 5', 29_750],
    ['Fri, 20 Nov 2026 12:00:30 GMT, Fri, 20 Nov 2026 12:01:00 GMT', 59_750],
    ['Friday, 20-Nov-26 12:01:00 GMT,Fri Nov 20 12:00:30 2026', 59_750],
    ['Fri, 20 Nov 2026 12:00:30 GMT', 29_750],
    ['Friday, 20-Nov-26 12:00:30 GMT', 29_750],
    ['Fri, 20 Nov 2026 12:00:60 GMT', 59_750],
    ['Fri Nov 20 12:00:30 2026', 29_750],
    ['Sun Dec  6 12:00:00 2026', 1_382_399_750],
    ['Sun, 06 Nov 1994 08:49:37 GMT', 0],
  ])('reads %j as %d ms', (text, expected) => {
    expect(parseRetryAfter(text, nowMs)).toBe(expected)
  })

  it('reads a two-digit year as past if it seems more than 50 years ahead', () => {
    expect(parseRetryAfter('Sunday, 06-Nov-94 08:49:37 GMT', nowMs)).toBe(0)
    expect(parseRetryAfter('Friday, 20-Nov-76 12:00:00 GMT', nowMs)).toBeGreaterThan(0)
  })

  const noNumbers = ['', '-5', '+5', '.5', '5.', '5s', '1e3', '0x10', 'soon', 'Infinity']
  it.each([
    ...noNumbers,
    '2026-11-20T12:00:30Z',
    'Fri, 20 Nov 2026 12:00:30',
    'Fri, 20 Nov 2026 12:00:30 CET',
    'Fri, 31 Feb 2026 12:00:30 GMT',
    'Fri, 20 Nox 2026 12:00:30 GMT',
    'Fri, 00 Nov 2026 12:00:30 GMT',
    'Fri, 20 Nov 2026 24:00:30 GMT',
    'Fri, 20 Nov 2026 12:60:30 GMT',
    'Fri, 20 Nov 2026 12:00:61 GMT',
    undefined,
  ])('ignores %j', (text) => {
    expect(parseRetryAfter(text, nowMs)).toBeUndefined()
  })
})

describe('merging Retry-After', () => {
  it.each([
    ['60', '30', '60'],
    ['30', '60', '60'],
    ['0', '30', '30'],
    [undefined, '30', '30'],
    ['9999999', '30', '1728000'],
  ])('H26: of %j and ours, %j, sends %j', (existing, ours, expected) => {
    expect(mergeRetryAfter(existing, ours)).toBe(expected)
  })

  it('converts an existing date to seconds, and keeps the later', () => {
    const existing = 'Fri, 20 Nov 2026 12:01:00 GMT'
    expect(mergeRetryAfter(existing, '30', { nowMs })).toBe('60')
    expect(mergeRetryAfter(existing, '90', { nowMs })).toBe('90')
  })

  it.each(['', 'soon', '0.5', '-1'])('replaces %j, which no client can read', (existing) => {
    expect(mergeRetryAfter(existing, '30')).toBe('30')
  })
})
