import { formatHeaders, parseHeaders, policyNameProblem } from '@sluice/headers'
import fc from 'fast-check'
import { parseDictionary, parseList } from 'structured-headers'
import { expect, it } from 'vitest'
import { cpuMsOf } from '../support/cpu-ms.ts'
import { anyTime, hostileStates, ietfDialects, legacyDialects } from './arbitraries.ts'

const formatted = fc
  .record({
    states: hostileStates,
    ietf: fc.constantFrom(...ietfDialects),
    legacy: fc.constantFrom(...legacyDialects),
    nowMs: anyTime,
    rejected: fc.boolean(),
    retryJitterMs: fc.option(anyTime, { nil: undefined }),
  })
  .map(({ states, ietf, legacy, ...options }) => ({
    states,
    lines: formatHeaders(states, { ...options, dialects: [ietf, legacy] }),
  }))

it('whatever the types let through, formatting yields each field once, in printable ASCII: structured fields that parse, integers of at most 15 digits, and a sound Retry-After', () => {
  const property = fc.property(formatted, ({ lines }) => {
    for (const [name, value] of lines) {
      expect(name).toMatch(/^[A-Za-z-]+$/)
      expect(value).toMatch(/^[\x20-\x7e]+$/)
      if (name === 'X-RateLimit-Resource') expect(policyNameProblem(value)).not.toBe('illegal')
      else if (name === 'RateLimit-Policy') parseList(value)
      else if (name !== 'RateLimit') expect(value).toMatch(/^\d{1,15}$/)
      else if (value.startsWith('"')) parseList(value)
      else parseDictionary(value)
    }
    expect(new Set(lines.map(([name]) => name)).size).toBe(lines.length)
    const retryAfter = Number(lines.find(([name]) => name === 'Retry-After')?.[1] ?? '1')
    expect(retryAfter >= 1 && retryAfter <= 1_728_000).toBe(true)
  })
  fc.assert(property, { numRuns: 4_000 })
})

it('reading takes no long time for a long field', () => {
  const policies = Array.from({ length: 5000 }, (_, index) => `"x";q=1;w=1;n=${index}`).join(',')
  const states = policies.replaceAll('q=1', 'r=1')
  const tookMs = cpuMsOf(() => {
    parseHeaders({
      'RateLimit-Policy': policies,
      RateLimit: states,
      'Retry-After': ' '.repeat(1e5),
    })
    parseHeaders({ 'Retry-After': `${'1 ,'.repeat(30_000)}x` })
  })
  expect(tookMs).toBeLessThan(2000)
})
