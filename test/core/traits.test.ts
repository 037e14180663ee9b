import { algorithmNames, createLimiter, memoryStore } from '@sluice/core'
import { algorithms } from '@sluice/core/backend'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { algorithmPolicy, testedAlgorithms } from '../stores/algorithm-policy.ts'
import { policyOf } from '../stores/traces.ts'

describe('the names of algorithms in keys', () => {
  it.each(algorithmNames)('stay as they are, with the settings behind them: %s', (name) => {
    const { counted } = testedAlgorithms[name]
    for (const [place, options] of Object.entries(counted)) {
      const policy = policyOf({ ...algorithmPolicy(name, { limit: 10, window: '1m' }), ...options })
      expect(`${algorithms[name].keyName}-${algorithms[name].keyShape(policy)}`).toBe(place)
    }
  })

  it('say nothing of the numbers of a penalty', () => {
    const { penalty } = createLimiter({
      penalty: { after: 3, within: '1m', for: '1m' },
      store: memoryStore(),
    })
    if (!penalty) throw new Error('a penalty')
    expect(algorithms.penalty.keyName).toBe('penalty')
    expect(algorithms.penalty.keyShape(penalty)).toBe('')
  })

  it('are unlike each other', () => {
    // A log beside held units is the same log: a policy keeps its counts when grants are turned on.
    const { 'granted-log': _, ...own } = algorithms
    const names = Object.values(own).map(({ keyName }) => keyName)
    expect(new Set(names).size).toBe(names.length)
  })
})

describe.each(algorithmNames)('the state of %s', (name) => {
  const policy = policyOf(algorithmPolicy(name, { limit: 5, window: '1m' }))
  const { codec, create, take, used, endsAt } = algorithms[name]
  const check = { policy, cost: 2, limit: 5 }

  it('survives the codec', () => {
    const state = create()
    for (const now of [1_000, 1_001, 61_500]) take(state, check, now)
    const copy = codec.load(codec.save(state))
    if (!copy) throw new Error('a state')
    expect(codec.save(copy)).toEqual(codec.save(state))
    expect(used(copy, check, 61_500)).toBe(used(state, check, 61_500))
    expect(endsAt(copy, check)).toBe(endsAt(state, check))
  })

  it.skipIf(!algorithms[name].takeUsual)('takes a usual request as the other functions do', () => {
    const { takeUsual, clamp, capacity, quota = capacity, msUntil, resetMs } = algorithms[name]
    const step = fc.record({
      elapsedMs: fc.oneof(fc.nat(20), fc.nat(70_000), fc.integer({ min: -90_000, max: 0 })),
      cost: fc.integer({ min: 1, max: 3 }),
      limit: fc.integer({ min: 1, max: 6 }),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        let now = 1_000_000
        const one = create()
        const other = create()
        for (const { elapsedMs, cost, limit } of steps) {
          now += elapsedMs
          const check = { policy, cost, limit }
          const clamped = clamp(other, check, now)
          const target = capacity(check) - cost
          const fits = target >= 0 && msUntil(clamped, check, { now, target }) === 0
          const delayMs = algorithms[name].delayMs?.(clamped, check, now) ?? 0
          const taken = takeUsual?.(one, check, now)
          if (!taken) Object.assign(one, clamp(one, check, now))
          else expect(fits).toBe(true)
          Object.assign(other, clamped)
          if (fits) expect(take(other, check, now)).toBe(taken?.at ?? take(one, check, now))
          expect(codec.save(one)).toEqual(codec.save(other))
          const units = used(other, check, now)
          const remaining = Math.min(limit, Math.max(0, quota(check) - units))
          const expected = {
            remaining,
            resetMs: resetMs(other, check, { now, used: units }),
            delayMs,
          }
          if (taken) expect(taken).toMatchObject(expected)
        }
      }),
    )
  })

  it('is not read from other numbers', () => {
    expect(codec.load([])).toBeUndefined()
    expect(codec.load([1, 2])).toBeUndefined()
  })
})
