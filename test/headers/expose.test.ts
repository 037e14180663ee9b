import { type Dialect, exposedHeaders, mergeExposed } from '@sluice/headers'
import { describe, expect, it } from 'vitest'

const draft = 'RateLimit, RateLimit-Policy, '
const draft6 = 'RateLimit-Limit, RateLimit-Policy, RateLimit-Remaining, RateLimit-Reset, '
const legacy = 'X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, '

it.each<[string, readonly Dialect[], string]>([
  ['draft-11 (H20)', ['draft-11'], draft],
  ['its alias draft-8 (H20)', ['draft-8'], draft],
  ['draft-7 (H21)', ['draft-7'], draft],
  ['draft-6 (H22)', ['draft-6'], draft6],
  ['legacy (H23)', ['legacy'], legacy],
  ['legacy-delta (H23)', ['legacy-delta'], legacy],
  ['legacy-github', ['legacy-github'], `${legacy}X-RateLimit-Used, X-RateLimit-Resource, `],
  ['the default dialects, in any order', ['legacy', 'draft-11'], draft + legacy],
  ['no dialect', [], ''],
])('browsers must be allowed to read the fields of %s', (_, dialects, fields) => {
  expect(exposedHeaders(dialects).join(', ')).toBe(`${fields}Retry-After`)
})

describe('an existing Access-Control-Expose-Headers', () => {
  const names = exposedHeaders(['draft-11'])

  it.each(['*', ' * ', 'ETag, *'])('H24: stays %j', (existing) => {
    expect(mergeExposed(existing, names)).toBe(existing)
  })

  it('H24: does not repeat a name in another case', () => {
    const merged = mergeExposed('etag,ratelimit-POLICY , retry-after', names)
    expect(merged).toBe('etag, ratelimit-POLICY, retry-after, RateLimit')
  })

  it.each([undefined, '', ' , '])('is only ours when it was %j', (existing) => {
    expect(mergeExposed(existing, names)).toBe('RateLimit, RateLimit-Policy, Retry-After')
  })
})
