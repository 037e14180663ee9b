import { checkHistory, type HistoryLine, readHistory } from '@sluice/testing/histories'
import { describe, expect, it } from 'vitest'

type Some = Partial<HistoryLine> & Pick<HistoryLine, 'start'>

function line({ start, end = start, ...more }: Some): HistoryLine {
  return { start, end, process: 'a', key: 'k', policy: 'p', decision: 'allowed', ...more }
}

function check(...lines: readonly Some[]) {
  return checkHistory(lines.map(line), { p: { limit: 2, windowMs: 100, toleranceMs: 0 } })
}

const kindsOf = (...lines: readonly Some[]) => check(...lines).findings.map(({ kind }) => kind)
const denied = (start: number, retryAfterMs: number, more: Partial<HistoryLine> = {}): Some => ({
  ...{ start, retryAfterMs, decision: 'denied' as const },
  ...more,
})

describe('a bound', () => {
  it.each([
    { what: 'kept by what leaves its window', times: [[0], [1], [100]], bound: 'kept' },
    { what: 'violated within a window', times: [[0], [1], [99]], bound: 'violated' },
    { what: 'undecided while it may be either', times: [[0], [1], [50, 150]], bound: 'undecided' },
  ])('is $what', ({ times, bound }) => {
    const report = check(...times.map(([start = 0, end = start]) => ({ start, end })))
    expect(report).toMatchObject({ bound, lines: 3, admittedUnits: 3 })
    expect(report.findings.map(({ kind }) => kind)).toEqual(
      bound === 'violated' ? ['over-limit'] : [],
    )
  })

  it('counts costs, each key and policy apart, and neither refunds nor what nobody saw', () => {
    expect(kindsOf({ start: 0, cost: 2 }, { start: 1, key: 'other', cost: 2 })).toEqual([])
    expect(kindsOf({ start: 0, cost: 2 }, { start: 1, decision: 'refunded' })).toEqual([])
    expect(kindsOf({ start: 0, cost: 2 }, { start: 1, end: null, decision: 'unknown' })).toEqual([])
    expect(kindsOf({ start: 0, cost: 2 }, { start: 1 })).toEqual(['over-limit'])
  })

  it('begins anew with a reset, which may lie anywhere in its time', () => {
    const done = { start: 20, end: 30, decision: 'reset', id: 1 } as const
    const asked = { ...done, end: null }
    for (const reset of [asked, done]) {
      expect(kindsOf({ start: 0 }, { start: 1 }, reset, { start: 40 })).toEqual([])
    }
    // What came of it replaces what was asked.
    const after = [31, 32, 33].map((start) => ({ start }))
    expect(kindsOf(asked, done, ...after)).toEqual(['over-limit'])
  })

  it('is that of the limit of each request', () => {
    expect(check({ start: 0, limit: 3 }, { start: 1 }, { start: 2 }).bound).toBe('kept')
    const lines = [1, 1, 3].map((limit, start) => ({ start, limit }))
    expect(check(...lines).bound).toBe('violated')
  })
})

describe('a refusal', () => {
  it('is wrongful only if all that may have been admitted leaves room', () => {
    expect(kindsOf({ start: 0 }, denied(50, 50))).toEqual(['wrongful-refusal'])
    const unknown = { start: 1, end: 60, decision: 'unknown' } as const
    expect(kindsOf({ start: 0 }, unknown, denied(50, 50))).toEqual([])
    expect(kindsOf({ start: 0 }, { start: 1 }, denied(101, 50))).toEqual(['wrongful-refusal'])
  })

  it('breaks its word if a client that waited is refused again', () => {
    const full = [{ start: 0 }, { start: 50 }]
    const broken = denied(100, 50, { cost: 2 })
    expect(kindsOf(...full, denied(60, 40, { cost: 2 }), broken)).toEqual(['broken-wait'])
    expect(kindsOf(...full, denied(60, 40), { start: 100 }, denied(101, 49))).toEqual([])
  })

  it('asks for too long a wait if the same would have been admitted before', () => {
    const kindsAfter = (waitMs: number) =>
      kindsOf({ start: 0, cost: 2 }, denied(60, waitMs), { start: 100 })
    expect(kindsAfter(60)).toEqual(['overlong-wait'])
    expect(kindsAfter(40)).toEqual([])
  })
})

it.each([
  ['more remains than was left', [{ start: 0 }, { start: 1, remaining: 1 }]],
  ['less remains than was left', [{ start: 0, remaining: 0 }]],
  ['less than nothing remains', [{ start: 0, cost: 2, remaining: -1 }]],
  ['an admission has a wait', [{ start: 0, retryAfterMs: 5 }]],
  ['a refusal has none', [{ start: 0, cost: 2 }, denied(1, 0)]],
  ['a refusal has room', [{ start: 0, cost: 2 }, denied(1, 99, { remaining: 1 })]],
  ['a refusal is for ever', [{ start: 0, cost: 2 }, denied(1, 0, { retryAfterMs: null })]],
] as const)('numbers contradict each other if %s', (_, lines) => {
  expect(kindsOf(...lines)).toContain('contradiction')
})

describe('a file', () => {
  it('is read up to a line that was cut', () => {
    const lines = [line({ start: 0 }), line({ start: 1, end: null, decision: 'unknown' })]
    const text = lines.map((each) => `${JSON.stringify(each)}\n`).join('')
    expect(readHistory(`${text}{"start":2,`)).toEqual(lines)
  })

  it.each([
    ['{', 'line 1 of the history: must be JSON'],
    ['[1]', 'process must be a string'],
    [{ ...line({ start: 0 }), decision: 'maybe' }, 'decision must be one of allowed'],
    [{ ...line({ start: 5 }), end: 4 }, 'end must be a time in ms, not before start'],
    [{ ...line({ start: 0 }), cost: '1' }, 'cost must be a number'],
  ])('with the line %j is an error', (wrong, message) => {
    const text = typeof wrong === 'string' ? wrong : JSON.stringify(wrong)
    expect(() => readHistory(`${text}\n`)).toThrow(message)
  })

  it('needs the law of each policy', () => {
    expect(() => checkHistory([line({ start: 0 })], {})).toThrow("laws has no policy 'p'")
  })
})
