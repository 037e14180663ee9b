import {
  type CountedKey,
  createCheckLimiter,
  type LimiterOptions,
  memoryStore,
  type ShadowEvent,
} from '@sluice/core'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { fakeTime } from '../support/fake-time.ts'
import { checkOf } from '../support/patient-limiter.ts'
import { type AnyOp, goneStore, storeThrough } from '../support/store-through.ts'
import { until } from '../support/until.ts'

const tight = { name: 'tight', limit: 1, window: '1m', mode: 'shadow' } as const
const loose = { name: 'loose', limit: 3, window: '1m' } as const

fakeTime(['Date'], { now: 1_000_000 })

function observed(options: LimiterOptions) {
  const onShadow = vi.fn<(event: ShadowEvent) => void>()
  const limiter = createCheckLimiter({ observers: { onShadow }, ...options })
  const told = () =>
    onShadow.mock.calls.map(([{ outcomes }]) =>
      outcomes.map(({ policy, allowed }) => `${policy.name} ${allowed ? 'allows' : 'denies'}`),
    )
  return { limiter, told }
}

describe('a policy in shadow', () => {
  it('is counted and reported, and refuses nothing', async () => {
    const { limiter, told } = observed({ policies: [tight, loose] })
    const answers = []
    for (let i = 0; i < 4; i += 1) answers.push(await limiter.consume('ada'))

    expect(answers.map(({ allowed }) => allowed)).toEqual([true, true, true, false])
    expect(answers.map(({ outcomes }) => outcomes.map(({ policy }) => policy.name))).toEqual(
      Array(4).fill(['loose']),
    )
    // A request that is refused would not be there for it either.
    expect(told()).toEqual([['tight allows'], ['tight denies'], ['tight denies']])
  })

  it('is charged only for requests that it would admit', async () => {
    const store = memoryStore()
    const { limiter } = observed({ store, policies: [{ ...tight, limit: 5 }, loose] })
    await limiter.consume('ada', { cost: 2 })
    await limiter.consume('ada', { cost: 1 })
    await limiter.consume('ada', { cost: 3 })

    const twin = createCheckLimiter({ ...tight, limit: 5, mode: 'enforce', store })
    expect((await twin.peek('ada')).outcomes[0]?.remaining).toBe(2)
  })

  it('evaluates each policy separately', async () => {
    const other = { ...tight, name: 'other', limit: 2 }
    const { limiter, told } = observed({ policies: [tight, other] })
    for (let i = 0; i < 3; i += 1) await limiter.consume('ada')

    expect(told()).toEqual([
      ['tight allows', 'other allows'],
      ['tight denies', 'other allows'],
      ['tight denies', 'other denies'],
    ])
  })

  it('reports the request and the outcome, and nothing to onDecision', async () => {
    const [onShadow, onDecision] = [vi.fn(), vi.fn()]
    const { limiter } = observed({ policies: [tight, loose], observers: { onShadow, onDecision } })
    const decision = await limiter.consume('ada', { cost: 1 })

    expect(decision.outcomes).toHaveLength(1)
    expect(onDecision.mock.calls).toMatchObject([[{ decision, checks: [{}] }]])
    expect(onShadow).toHaveBeenCalledExactlyOnceWith({
      decision,
      outcomes: [expect.objectContaining({ allowed: true, remaining: 0, limit: 1 })],
      checks: [{ policy: limiter.policies[0], key: 'ada', cost: 1, limit: 1 }],
      digests: [expect.stringMatching(/^[\w-]{22}$/)],
      request: undefined,
      route: undefined,
    })
    expect(JSON.stringify(decision)).not.toContain('ada')
  })

  it('is charged, refunded and reset with the others, and left out of a peek', async () => {
    const store = memoryStore()
    const { limiter } = observed({ store, policies: [{ ...tight, limit: 10 }, loose] })
    const twin = createCheckLimiter({ ...tight, limit: 10, mode: 'enforce', store })
    const left = async () => (await twin.peek('ada')).outcomes[0]?.remaining

    await limiter.charge('ada', { cost: 2 })
    expect(await left()).toBe(8)
    const decision = await limiter.consume('ada')
    expect(await left()).toBe(7)
    expect((await limiter.peek('ada')).outcomes).toHaveLength(1)
    expect(await limiter.refund(decision)).toBe(true)
    expect(await limiter.refund(decision)).toBe(false)
    expect(await left()).toBe(8)
    await limiter.reset('ada')
    expect(await left()).toBe(10)
  })

  it('does not affect the other policies', () => {
    const policy = fc.record({ limit: fc.integer({ min: 0, max: 4 }), shadow: fc.boolean() })
    fc.assert(
      fc.property(
        fc.array(policy, { minLength: 1, maxLength: 4 }),
        fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 12 }),
        (policies, costs) => {
          const all = policies.map(({ limit, shadow }, index) => ({
            name: `p${index}`,
            limit,
            window: '1m' as const,
            ...(shadow ? { mode: 'shadow' as const } : {}),
          }))
          const enforced = all.filter(({ mode }) => mode === undefined)
          const answer = (listed: typeof all) => {
            const limiter = createCheckLimiter({ policies: listed })
            return costs.map((cost) => {
              const checks = limiter.policies.map((each) => checkOf(each, { cost }))
              const decision = limiter.decide(checks)
              if (decision instanceof Promise) throw new Error('a promise')
              const left = decision.outcomes.map(({ remaining }) => remaining)
              return [decision.allowed, decision.retryAfterMs, decision.delayMs, left]
            })
          }
          // Where nothing is enforced, all pass at once.
          const expected =
            enforced.length > 0 ? answer(enforced) : costs.map(() => [true, 0, 0, []])
          expect(answer(all)).toEqual(expected)
        },
      ),
    )
  })
})

describe('a remote store', () => {
  function remote() {
    const memory = memoryStore()
    const answers: (() => void)[] = []
    const asked = vi.fn((_op: AnyOp, _checks: readonly CountedKey[]) => {
      return new Promise<void>((resolve) => answers.push(resolve))
    })
    return { store: storeThrough(memory, asked), asked, answer: () => answers.shift()?.() }
  }

  it('evaluates shadows after the decision, without delay', async () => {
    const { store, asked, answer } = remote()
    const { limiter, told } = observed({ store, policies: [tight, loose], deadlineMs: 60_000 })
    const decision = limiter.consume('ada')
    expect(asked).toHaveBeenCalledTimes(1)
    answer()

    expect((await decision).allowed).toBe(true)
    expect(asked).toHaveBeenCalledTimes(2)
    expect(told()).toEqual([])
    answer()
    await until('it is told', () => told().length > 0)
    expect(told()).toEqual([['tight allows']])
  })

  it("admits a request immediately, and refunds a shadow's units once known", async () => {
    const { store, asked, answer } = remote()
    const { limiter } = observed({ ...tight, store, deadlineMs: 60_000 })
    const decision = await limiter.consume('ada')
    expect(decision.allowed).toBe(true)
    const refunded = limiter.refund(decision)
    answer()
    await until('the refund is asked for', () => asked.mock.lastCall?.[0] === 'refund')
    const checks = [expect.objectContaining({ key: 'ada' })]
    expect(asked).toHaveBeenLastCalledWith('refund', checks)
    answer()

    expect(await refunded).toBe(true)
  })

  it('that fails is reported as usual, without an outcome', async () => {
    const onStoreError = vi.fn()
    const options = { store: goneStore(memoryStore()), observers: { onStoreError } }
    const { limiter, told } = observed({ ...tight, ...options, failureMode: 'closed' })

    expect((await limiter.consume('ada')).allowed).toBe(true)
    await until('it is told', () => onStoreError.mock.calls.length > 0)
    expect(onStoreError).toHaveBeenCalledTimes(1)
    expect(told()).toEqual([])
  })
})

describe('a canary', () => {
  const enforcedKeys = (share: number, { name = 'canary', keys = 10_000 } = {}) => {
    const limiter = createCheckLimiter({ name, limit: 0, window: '1m', enforce: { share } })
    return Array.from({ length: keys }, (_, i) => `user:${i}`).filter((key) => {
      const decision = limiter.decide([checkOf(limiter.policies[0], { key })])
      if (decision instanceof Promise) throw new Error('a promise')
      return !decision.allowed
    })
  }

  it.each([0, 0.01, 0.1, 0.5, 0.9, 1])(
    'is enforced for a share of %s of the keys, within 2 %%',
    (share) => {
      const error = Math.abs(enforcedKeys(share).length / 10_000 - share)
      expect(error).toBeLessThanOrEqual(share === 0 || share === 1 ? 0 : 0.02)
    },
  )

  it('is enforced for the same keys at any time, and for more of them when the share is raised', () => {
    const share = fc.double({ min: 0, max: 1, noNaN: true })
    fc.assert(
      fc.property(share, share, (one, other) => {
        const some = (share: number) => enforcedKeys(share, { keys: 200 })
        const many = some(Math.max(one, other))
        expect(many).toEqual(expect.arrayContaining(some(Math.min(one, other))))
        expect(some(Math.max(one, other))).toEqual(many)
      }),
      { numRuns: 30 },
    )
  })

  it('is enforced for other keys than another policy', () => {
    const one = new Set(enforcedKeys(0.5, { name: 'one' }))
    const both = enforcedKeys(0.5, { name: 'two' }).filter((key) => one.has(key))

    expect(both.length / 10_000).toBeGreaterThan(0.23)
    expect(both.length / 10_000).toBeLessThan(0.27)
  })
})
