import { type Dialect, formatHeaders, type HeaderLine } from '@sluice/headers'
import { describe, expect, it } from 'vitest'
import { dialectsOf, nowMs, statesOf, vectorKeys, vectors } from './vectors.ts'

describe.each(vectorKeys)('the vectors of %s', (key) => {
  const cases = dialectsOf[key].flatMap((dialect) =>
    vectors.map((vector) => ({ id: vector.id, state: vector.state, dialect, vector })),
  )

  it.each(cases)('$id as $dialect: $state', ({ dialect, vector }) => {
    const lines = formatHeaders(statesOf(vector), options(vector.status, [dialect]))
    expect(lines.map(asText)).toEqual(vector[key])
  })
})

describe('the default dialects together', () => {
  it.each(vectors)('$id: draft-11 lines, then legacy lines, then one Retry-After', (vector) => {
    const lines = formatHeaders(statesOf(vector), options(vector.status, ['draft-11', 'legacy']))
    const retryAfter = vector['draft-11'].filter(isRetryAfter)
    expect(lines.map(asText)).toEqual([
      ...vector['draft-11'].filter((line) => !isRetryAfter(line)),
      ...vector['legacy-epoch'].filter((line) => !isRetryAfter(line)),
      ...retryAfter,
    ])
    expect(retryAfter.length).toBeLessThanOrEqual(1)
  })
})

function options(status: number, dialects: readonly Dialect[]) {
  return { dialects, nowMs, rejected: status === 429 }
}

function asText([name, value]: HeaderLine): string {
  return `${name}: ${value}`
}

function isRetryAfter(line: string): boolean {
  return line.startsWith('Retry-After:')
}
