import { createLimiter, type LimiterOptions, unlimited } from '@sluice/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

function enforced(limit: number | typeof unlimited, headroom: number): number | undefined {
  return createLimiter({ limit, window: 1, headroom }).policies[0]?.limit
}

describe('headroom', () => {
  it.each([
    [100, 0.07, 93],
    [30, 1 / 3, 20],
    [0, 0.5, 0],
  ])('of a limit of %i, %d leaves %i', (limit, headroom, left) => {
    expect(enforced(limit, headroom)).toBe(left)
  })

  it('leaves unlimited as it is', () => {
    expect(enforced(unlimited, 0.1)).toBe(Number.POSITIVE_INFINITY)
  })

  it('is exact for shares of up to six decimals, whatever the limit', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 2 ** 47 - 1 }),
        fc.integer({ min: 0, max: 500_000 }),
        (limit, millionths) => {
          const exact = (BigInt(limit) * BigInt(1_000_000 - millionths)) / 1_000_000n
          expect(enforced(limit, millionths / 1_000_000)).toBe(Math.max(1, Number(exact)))
        },
      ),
    )
  })

  it('is enforced and told', async () => {
    const limiter = createLimiter({ limit: 10, window: '1m', headroom: 0.2 })
    expect((await limiter.consume('k')).outcomes).toMatchObject([{ limit: 8, remaining: 7 }])
    expect((await limiter.consume('k', { cost: 8 })).allowed).toBe(false)
    expect((await limiter.consume('k', { cost: 7 })).allowed).toBe(true)
  })

  it('is of the burst of a token bucket too, where that is the limit, and not where it is given', async () => {
    const bucket = { limit: 10, window: '1m', algorithm: 'token-bucket', headroom: 0.2 } as const
    for (const [cost, burst, allowed] of [
      [9, {}, false],
      [8, {}, true],
      [20, { burst: 20 }, true],
    ] as const) {
      const decision = await createLimiter({ ...bucket, ...burst }).consume('k', { cost })
      expect(decision.allowed).toBe(allowed)
    }
  })

  it.each([-0.1, 0.51, Number.NaN, '0.1', null])('cannot be %s', (headroom) => {
    const options = { limit: 10, window: '1m', headroom } as LimiterOptions
    const message = /^headroom must be a number from 0 to 0.5, .* but is /
    expect(() => createLimiter(options)).toThrow(message)
  })
})
