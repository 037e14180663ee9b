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
        const { keys: found, floor, total } = sketched(keys, size).top(size)
        expect(total).toBe(keys.length)
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

  it('keeps its promise to an adversary that pushes every key out', () => {
    const [size, rounds] = [10, 400]
    const sketch = new SpaceSaving(size)
    const exact = new Map<string, number>()
    const add = (key: string): void => {
      exact.set(key, (exact.get(key) ?? 0) + 1)
      sketch.add(key)
    }
    for (let round = 0; round < rounds; round += 1) {
      // One key that stays, and as many new ones as an eviction needs, each counted once or twice.
      add('stays')
      for (let i = 0; i < 2 * size; i += 1) add(`new-${round}-${i}`)
      for (let i = 0; i < size; i += 2) add(`new-${round}-${i}`)
    }
    const { keys, floor, total } = sketch.top(2 * size)
    for (const { key, count, error } of keys) {
      expect(count).toBeGreaterThanOrEqual(exact.get(key) ?? 0)
      expect(count - error).toBeLessThanOrEqual(exact.get(key) ?? 0)
    }
    expect(floor).toBeLessThanOrEqual(total / size)
    expect(sketch.copy().top(2 * size)).toEqual(sketch.top(2 * size))
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

  it('finds the frequent keys of a Zipf stream among 100,000 others', () => {
    const sketch = new SpaceSaving(1_000)
    let state = 1
    const random = (): number => {
      state = (state * 48_271) % 2_147_483_647
      return state / 2_147_483_647
    }
    const exact = new Map<string, number>()
    for (let i = 0; i < 200_000; i += 1) {
      const key = `${Math.floor(100_000 ** random())}`
      exact.set(key, (exact.get(key) ?? 0) + 1)
      sketch.add(key)
    }
    const truth = [...exact].sort((one, another) => another[1] - one[1]).slice(0, 10)
    expect(sketch.top(10).keys.map(({ key }) => key)).toEqual(truth.map(([key]) => key))
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
