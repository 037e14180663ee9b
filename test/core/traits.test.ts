import {
  algorithmNames,
  createLimiter,
  memoryStore,
  type Policy,
  type PolicyFields,
} from '@sluice/core'
import { algorithms } from '@sluice/core/backend'
import { describe, expect, it } from 'vitest'
import { testedAlgorithms } from '../stores/algorithm-policy.ts'
import { limiterOf } from '../support/patient-limiter.ts'

function policyOf(options: PolicyFields): Policy {
  const [policy] = limiterOf({ policies: [options] }).policies
  if (!policy) throw new Error('one policy')
  return policy
}

describe('the names of algorithms in keys', () => {
  it.each([
    ['60000', { algorithm: 'sliding-log', window: '1m' }],
    ['60000-r500', { algorithm: 'sliding-log', window: '1m', resolution: 500 }],
    ['60000', { algorithm: 'sliding-counter', window: '1m' }],
    ['60000', { algorithm: 'fixed-window', window: '1m' }],
    ['60000-clock', { algorithm: 'fixed-window', window: '1m', align: 'clock' }],
    ['60000', { algorithm: 'token-bucket', window: '1m', burst: 7 }],
    ['60000', { algorithm: 'leaky-bucket', window: '1m', queue: 7 }],
    ['30000', { algorithm: 'concurrency' }],
  ] as const)('have the window and the settings beside them: %s, %j', (shape, options) => {
    const policy = policyOf({ limit: 10, ...options })
    expect(algorithms[policy.algorithm].keyShape(policy)).toBe(shape)
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

  it.each(algorithmNames)('stay as they are: %s', (name) => {
    expect(algorithms[name].keyName).toBe(testedAlgorithms[name].keyName)
  })

  it('are unlike each other', () => {
    // A log beside held units is the same log: a policy keeps its counts when grants are turned on.
    const { 'held-log': _, ...own } = algorithms
    const names = Object.values(own).map(({ keyName }) => keyName)
    expect(new Set(names).size).toBe(names.length)
  })
})

describe.each(algorithmNames)('the state of %s', (name) => {
  const policy = policyOf({
    algorithm: name,
    limit: 5,
    ...(name !== 'concurrency' && { window: '1m' }),
  })
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

  it('is not read from other numbers', () => {
    expect(codec.load([])).toBeUndefined()
    expect(codec.load([1, 2])).toBeUndefined()
  })
})
