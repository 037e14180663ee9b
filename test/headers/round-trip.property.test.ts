import { type Dialect, formatHeaders, type PolicyState, parseHeaders } from '@sluice/headers'
import fc from 'fast-check'
import { parseDictionary, parseList } from 'structured-headers'
import { describe, expect, it } from 'vitest'
import { allDialects, soundStates } from './arbitraries.ts'
import { nowMs } from './vectors.ts'

function fieldsOf(states: readonly PolicyState[], dialect: Dialect, rejected: boolean) {
  const lines = formatHeaders(states, { dialects: [dialect], nowMs, rejected })
  expect(new Set(lines.map(([name]) => name)).size).toBe(lines.length)
  return Object.fromEntries(lines)
}

const anyDialect = fc.constantFrom(...allDialects)

describe('whatever a limiter reports', () => {
  it('is read back by our parser, in draft-11', () => {
    const property = fc.property(soundStates, fc.boolean(), (states, rejected) => {
      const { policies } = parseHeaders(fieldsOf(states, 'draft-11', rejected), { nowMs })
      const visible = states.filter(({ hidden }) => !hidden)
      expect(policies).toEqual(
        visible.map((state) => ({
          name: state.name,
          limit: state.limit,
          windowMs: ceilToSeconds(state.windowMs),
          remaining: state.remaining === undefined ? undefined : Math.floor(state.remaining),
          resetMs: state.remaining === undefined ? undefined : shownReset(state, rejected),
          unit: state.unit === 'requests' ? undefined : state.unit,
          pk: state.pk,
        })),
      )
    })
    fc.assert(property)
  })

  it('is a policy that exists, in the older dialects', () => {
    const older = anyDialect.filter((dialect) => dialect !== 'draft-11')
    const property = fc.property(soundStates, older, fc.boolean(), (states, dialect, rejected) => {
      const { policies } = parseHeaders(fieldsOf(states, dialect, rejected), { nowMs })
      const requests = states.filter(
        ({ hidden, unit = 'requests' }) => !hidden && unit === 'requests',
      )
      for (const policy of policies) {
        expect(requests.map(({ limit }) => limit)).toContain(policy.limit)
        expect(policy.remaining ?? 0).toBeLessThanOrEqual(policy.limit ?? 0)
      }
      expect(policies.filter(({ remaining }) => remaining !== undefined).length).toBeLessThan(2)
    })
    fc.assert(property)
  })

  it('has the Retry-After of the slowest policy that denies', () => {
    const property = fc.property(soundStates, anyDialect, (states, dialect) => {
      const { retryAfterMs } = parseHeaders(fieldsOf(states, dialect, true), { nowMs })
      const waitsMs = states.filter(({ denied }) => denied).map(waitMs)
      const longestMs = Math.max(...waitsMs)
      const none = waitsMs.length === 0 || longestMs === Number.POSITIVE_INFINITY
      expect(retryAfterMs).toBe(none ? undefined : clampToSeconds(longestMs))
    })
    fc.assert(property)
  })

  it('conforms to RFC 9651, says an independent parser', () => {
    const property = fc.property(soundStates, fc.boolean(), (states, rejected) => {
      for (const dialect of ['draft-11', 'draft-7', 'draft-6'] as const) {
        const fields = fieldsOf(states, dialect, rejected)
        const listed = parseList(fields['RateLimit-Policy'] ?? '')
        if (dialect === 'draft-11') {
          const names = listed.map(([name]) => name)
          expect(names).toEqual(states.filter((s) => !s.hidden).map(({ name }) => name))
          const available = parseList(fields.RateLimit ?? '').map(([name]) => name)
          expect(names).toEqual(expect.arrayContaining(available))
        } else {
          expect(new Set(listed.map(([limit]) => limit)).size).toBe(listed.length)
          const dictionary = parseDictionary(fields.RateLimit ?? '')
          expect([[], ['limit', 'remaining', 'reset']]).toContainEqual([...dictionary.keys()])
        }
        for (const [, parameters] of listed) expect(parameters.get('w') ?? 1).toBeGreaterThan(0)
      }
    })
    fc.assert(property)
  })
})

function ceilToSeconds(durationMs: number | undefined): number | undefined {
  return durationMs === undefined ? undefined : Math.max(1, Math.ceil(durationMs / 1000)) * 1000
}

function clampToSeconds(durationMs: number): number | undefined {
  return ceilToSeconds(Math.min(durationMs, 1_728_000_000))
}

function waitMs({ limit, retryAfterMs }: PolicyState): number {
  return limit === 0 ? Number.POSITIVE_INFINITY : (retryAfterMs ?? 0)
}

function shownReset(state: PolicyState, rejected: boolean): number | undefined {
  if (state.limit === 0 || state.resetMs === undefined) return undefined
  const violated = rejected && state.denied === true
  const finite = violated && waitMs(state) !== Number.POSITIVE_INFINITY
  return finite ? clampToSeconds(waitMs(state)) : ceilToSeconds(state.resetMs)
}
