import { type Dialect, exposedHeaders, mergeExposed } from '@sluice/headers'
import { describe, expect, it } from 'vitest'

const draft = 'RateLimit, RateLimit-Policy, '
const draft6 = 'RateLimit-Limit, RateLimit-Policy, RateLimit-Remaining, RateLimit-Reset, '
const legacy = 'X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, '

describe('the fields that browsers must be told of', () => {
  it.each<[string, readonly Dialect[], string]>([
    ['H20: draft-11', ['draft-11'], draft],
    ['H20: its alias draft-8', ['draft-8'], draft],
    ['H21: draft-7', ['draft-7'], draft],
    ['H22: draft-6', ['draft-6'], draft6],
    ['H23: legacy', ['legacy'], legacy],
    ['H23: legacy-delta', ['legacy-delta'], legacy],
    ['those of GitHub', ['legacy-github'], `${legacy}X-RateLimit-Used, X-RateLimit-Resource, `],
    ['the default dialects, in any order', ['legacy', 'draft-11'], draft + legacy],
    ['no dialect', [], ''],
  ])('%s', (_, dialects, fields) => {
    expect(exposedHeaders(dialects).join(', ')).toBe(`${fields}Retry-After`)
  })
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

  it.each([undefined, '', ' , '])('is ours alone when it was %j', (existing) => {
    expect(mergeExposed(existing, names)).toBe('RateLimit, RateLimit-Policy, Retry-After')
  })
})
