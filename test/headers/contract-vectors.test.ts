import { formatHeaders } from '@sluice/headers'
import { describe, expect, it } from 'vitest'
import { dialectsOf, nowMs, statesOf, vectorKeys, vectors } from './vectors.ts'

describe.each(vectorKeys)('the vectors of %s', (key) => {
  const cases = dialectsOf[key].flatMap((dialect) =>
    vectors.map((vector) => ({ id: vector.id, state: vector.state, dialect, vector })),
  )

  it.each(cases)('$id as $dialect: $state', ({ dialect, vector }) => {
    const rejected = vector.status === 429
    const lines = formatHeaders(statesOf(vector), { dialects: [dialect], nowMs, rejected })
    expect(lines.map(([name, value]) => `${name}: ${value}`)).toEqual(vector[key])
  })
})
