import { createLimiter, type LimiterOptions, unlimited } from '@sluice/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

/** The limit that a limiter enforces. */
function enforced(limit: number | typeof unlimited, headroom: number): number | undefined {
  return createLimiter({ limit, window: 1, headroom }).policies[0]?.limit
}

describe('headroom', () => {
  it.each([
    [100, 0.1, 90],
    [100, 0.07, 93],
    [1_000, 0.29, 710],
    [10, 0.15, 8],
    [30, 1 / 3, 20],
    [100, 0, 100],
    [100, 0.5, 50],
    [1, 0.5, 1],
    [0, 0.5, 0],
    [2 ** 47 - 1, 0.2, 112_589_990_684_261],
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
    const decisions = []
    for (let i = 0; i < 9; i += 1) decisions.push(await limiter.consume('k'))
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(8)
    expect(decisions[0]?.outcomes[0]).toMatchObject({ limit: 8, remaining: 7 })
  })

  it('is of the burst of a token bucket too, where that is the limit, and not where it is given', async () => {
    const bucket = { limit: 10, window: '1m', algorithm: 'token-bucket', headroom: 0.2 } as const
    expect((await createLimiter(bucket).consume('k', { cost: 9 })).allowed).toBe(false)
    expect((await createLimiter(bucket).consume('k', { cost: 8 })).allowed).toBe(true)
    expect((await createLimiter({ ...bucket, burst: 20 }).consume('k', { cost: 20 })).allowed).toBe(
      true,
    )
  })

  it.each([-0.1, 0.51, 10, Number.NaN, '0.1', null, Number.POSITIVE_INFINITY])(
    'cannot be %s',
    (headroom) => {
      const options = { limit: 10, window: '1m', headroom } as LimiterOptions
      expect(() => createLimiter(options)).toThrow(
        expect.objectContaining({
          code: 'SLUICE_OPTION_INVALID',
          message: expect.stringMatching(/^headroom must be a number from 0 to 0.5, .* but is /),
        }),
      )
    },
  )
})
