import { type HotKeys, mergeHotKeys, SpaceSaving } from '@sluice/core'
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

/** Holds the promise of a summary, also for the keys that it leaves out. */
function expectBounds({ keys: found, floor }: HotKeys, exact: ReadonlyMap<string, number>): void {
  for (const { key, count, error } of found) {
    const truth = exact.get(key) ?? 0
    expect(count).toBeGreaterThanOrEqual(truth)
    expect(count - error).toBeLessThanOrEqual(truth)
  }
  const listed = new Set(found.map(({ key }) => key))
  for (const [key, truth] of exact) if (!listed.has(key)) expect(truth).toBeLessThanOrEqual(floor)
}

function sketched(keys: readonly number[], size: number): SpaceSaving {
  const sketch = new SpaceSaving(size)
  for (const key of keys) sketch.add(`${key}`)
  return sketch
}

describe('SpaceSaving', () => {
  it('is never below the true count, and at most the reported error above it, up to total / size', () => {
    fc.assert(
      fc.property(stream, fc.integer({ min: 1, max: 20 }), (keys, size) => {
        const sketch = sketched(keys, size)
        const top = sketch.top(size)
        expect(sketch.copy().top(size)).toEqual(top)
        expect(top.total).toBe(keys.length)
        for (const { error } of [...top.keys, { error: top.floor }]) {
          expect(error).toBeLessThanOrEqual(top.total / size)
        }
        expectBounds(top, exactCounts(keys))
      }),
    )
  })

  it('counts the given number of units', () => {
    const sketch = new SpaceSaving(2)
    for (const key of ['a', 'b', 'a']) sketch.add(key, 5)
    const keys = [{ key: 'a', count: 10, error: 0 }]
    expect(sketch.top(1)).toEqual({ keys, floor: 5, total: 15 })
  })
})

describe('mergeHotKeys', () => {
  it('keeps the promise of its parts, whatever the parts left out', () => {
    fc.assert(
      fc.property(
        fc.array(stream, { maxLength: 5 }),
        fc.integer({ min: 1, max: 8 }),
        (parts, size) => {
          const tops = parts.map((keys) => sketched(keys, size).top(Math.ceil(size / 2)))
          const merged = mergeHotKeys(tops, size)
          expect(merged.total).toBe(parts.flat().length)
          expectBounds(merged, exactCounts(parts.flat()))
        },
      ),
    )
  })
})
