import { mergeHotKeys, SpaceSaving } from '@sluice/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

/** Streams in which few keys are frequent, and those in which each new key pushes another one out. */
const stream = fc.oneof(
  fc.array(fc.nat({ max: 12 }), { maxLength: 400 }),
  fc.array(
    fc.double({ min: 0.001, max: 1, noNaN: true }).map((u) => Math.min(500, Math.floor(1 / u))),
    { maxLength: 400 },
  ),
  fc.nat({ max: 300 }).map((count) => Array.from({ length: count }, (_, i) => i)),
)

function exactCounts(keys: readonly number[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const key of keys) counts.set(`${key}`, (counts.get(`${key}`) ?? 0) + 1)
  return counts
}

function sketched(keys: readonly number[], size: number): SpaceSaving {
  const sketch = new SpaceSaving(size)
  for (const key of keys) sketch.add(`${key}`)
  return sketch
}

describe('SpaceSaving', () => {
  it('is never below the true count, and above it by the error it tells, total / size at most', () => {
    fc.assert(
      fc.property(stream, fc.integer({ min: 1, max: 20 }), (keys, size) => {
        const exact = exactCounts(keys)
        const sketch = sketched(keys, size)
        const { keys: found, floor, total } = sketch.top(size)
        expect(sketch.copy().top(size)).toEqual(sketch.top(size))
        expect(total).toBe(keys.length)
        expect(floor).toBeLessThanOrEqual(total / size)
        for (const { key, count, error } of found) {
          const truth = exact.get(key) ?? 0
          expect(count).toBeGreaterThanOrEqual(truth)
          expect(count - error).toBeLessThanOrEqual(truth)
          expect(error).toBeLessThanOrEqual(total / size)
        }
        const listed = new Set(found.map(({ key }) => key))
        for (const [key, truth] of exact)
          if (!listed.has(key)) expect(truth).toBeLessThanOrEqual(floor)
      }),
    )
  })

  it('counts as many units as it is told', () => {
    const sketch = new SpaceSaving(2)
    sketch.add('a', 5)
    sketch.add('b', 2)
    sketch.add('a', 5)
    expect(sketch.top(1)).toEqual({
      keys: [{ key: 'a', count: 10, error: 0 }],
      floor: 2,
      total: 12,
    })
  })
})

describe('mergeHotKeys', () => {
  it('keeps the promise of its parts, whatever the parts left out', () => {
    fc.assert(
      fc.property(
        fc.array(stream, { maxLength: 5 }),
        fc.integer({ min: 1, max: 8 }),
        (parts, size) => {
          const exact = exactCounts(parts.flat())
          const tops = parts.map((keys) => sketched(keys, size).top(Math.ceil(size / 2)))
          const { keys: found, floor, total } = mergeHotKeys(tops, size)
          expect(total).toBe(parts.flat().length)
          for (const { key, count, error } of found) {
            const truth = exact.get(key) ?? 0
            expect(count).toBeGreaterThanOrEqual(truth)
            expect(count - error).toBeLessThanOrEqual(truth)
          }
          const listed = new Set(found.map(({ key }) => key))
          for (const [key, truth] of exact)
            if (!listed.has(key)) expect(truth).toBeLessThanOrEqual(floor)
        },
      ),
    )
  })
})
