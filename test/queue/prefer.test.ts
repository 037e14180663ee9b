import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseIdempotencyKey, parsePrefer } from '../../packages/queue/src/http/request-headers.ts'
import { cpuMsOf } from '../support/cpu-ms.ts'

describe('Prefer', () => {
  const none = { respondAsync: false, waitMs: undefined }

  it.each([
    [undefined, none],
    ['', none],
    ['respond-async', { respondAsync: true, waitMs: undefined }],
    ['Respond-Async', { respondAsync: true, waitMs: undefined }],
    ['respond-async, wait=10', { respondAsync: true, waitMs: 10_000 }],
    ['wait=10,respond-async', { respondAsync: true, waitMs: 10_000 }],
    ['wait = 10', { respondAsync: false, waitMs: 10_000 }],
    ['return=minimal; foo="a, respond-async", wait=5', { respondAsync: false, waitMs: 5_000 }],
    ['respond-async; x=1, handling=lenient', { respondAsync: true, waitMs: undefined }],
    ['wait=5, wait=10', { respondAsync: false, waitMs: 5_000 }],
    ['wait=-1', none],
    ['wait=1.5', none],
    ['wait', none],
    ['xrespond-async', none],
    [`respond-async, ${'x'.repeat(2_000)}`, none],
  ])('reads %j', (header, expected) => {
    expect(parsePrefer(header)).toEqual(expected)
  })

  it('is read, whatever it is', () => {
    const header = fc.string({ unit: 'binary', maxLength: 120 })
    fc.assert(fc.property(header, (text) => void parsePrefer(text)))
  })

  it('is read in no time, however it is made', () => {
    const tookMs = cpuMsOf(() => {
      for (let i = 0; i < 100; i += 1) parsePrefer('a="'.repeat(341))
    })
    expect(tookMs).toBeLessThan(1_000)
  })
})

describe('Idempotency-Key', () => {
  const lenient = { isStrict: false }

  it.each([
    ['"order-1"', 'order-1'],
    [' "order-1" ', 'order-1'],
    ['"a \\"b\\" \\\\"', 'a "b" \\'],
    ['order-1', 'order-1'],
    ['', undefined],
    ['""', undefined],
    ['"open', undefined],
    ['a b', undefined],
    ['a,b', undefined],
    ['"ü"', undefined],
    ['x'.repeat(257), undefined],
    [`"${'x'.repeat(256)}"`, 'x'.repeat(256)],
  ])('reads %j', (header, expected) => {
    expect(parseIdempotencyKey(header, lenient)).toBe(expected)
  })

  it('has to be quoted where that is asked for', () => {
    expect(parseIdempotencyKey('order-1', { isStrict: true })).toBeUndefined()
    expect(parseIdempotencyKey('"order-1"', { isStrict: true })).toBe('order-1')
  })

  it('is the same text whether quoted or not', () => {
    const property = fc.property(fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/), (key) => {
      expect(parseIdempotencyKey(`"${key}"`, lenient)).toBe(key)
      expect(parseIdempotencyKey(key, lenient)).toBe(key)
    })
    fc.assert(property)
  })
})
