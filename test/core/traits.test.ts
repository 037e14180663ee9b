import { algorithmNames, createLimiter, memoryStore } from '@sluice/core'
import { algorithms } from '@sluice/core/backend'
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

  it('exclude the numbers of a penalty', () => {
    const { penalty } = createLimiter({
      penalty: { after: 3, within: '1m', for: '1m' },
      store: memoryStore(),
    })
    if (!penalty) throw new Error('a penalty')
    expect(algorithms.penalty.keyName).toBe('penalty')
    expect(algorithms.penalty.keyShape(penalty)).toBe('')
  })

  it('are unique', () => {
    // A log beside held units is the same log: a policy keeps its counts when grants are turned on.
    const { 'granted-log': _, ...own } = algorithms
    const names = Object.values(own).map(({ keyName }) => keyName)
    expect(new Set(names).size).toBe(names.length)
  })
})

it.each(algorithmNames)('the state of %s is not read from other numbers', (name) => {
  const { codec, create } = algorithms[name]
  expect(codec.load([])).toBeUndefined()
  expect(codec.load([...codec.save(create()), 1])).toBeUndefined()
})
