import { memoryStore } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { limiterOf } from '../support/patient-limiter.ts'

const loose = { name: 'p', limit: 1_000, window: '1m', async: { maxUncounted: 50 } } as const

describe('the option async', () => {
  it.each([
    [
      { async: { maxUncounted: 0 } },
      /^async\.maxUncounted must be a whole number from 1 to 1000, but is 0$/,
    ],
    [{ async: { maxUncounted: 2.5 } }, /from 1 to 1000, but is 2\.5$/],
    [{ async: { maxUncounted: 1_001 } }, /from 1 to 1000, but is 1001$/],
    [{ async: { maxUncounted: '50' as never } }, /from 1 to 1000, but is '50'$/],
    [{ async: {} as never }, /^async\.maxUncounted must be a whole number .* but is undefined$/],
    [{ async: true as never }, /^async must be a plain object, but is true$/],
    [{ async: { maxUncounted: 5, every: 1 } as never }, /^async: there is no option 'every'/],
    [{ prefetch: '1s' } as const, /^async must be left out beside prefetch/],
    [{ countDenied: true }, /^async must be left out beside countDenied/],
    [
      { algorithm: 'leaky-bucket' } as const,
      /^async must be left out with algorithm 'leaky-bucket': only 'sliding-log'/,
    ],
  ])('is refused as %o', (own, message) => {
    expect(() => limiterOf({ ...loose, ...own })).toThrow(message)
  })

  it('is refused for concurrency, and for a penalty', () => {
    const { async } = loose
    expect(() => limiterOf({ limit: 5, algorithm: 'concurrency', async })).toThrow(
      /^async must be left out with algorithm 'concurrency'/,
    )
    const penalty = { after: 5, within: '1m', for: '5m', async } as never
    expect(() => limiterOf({ ...loose, penalty })).toThrow(/penalty.*async/)
  })

  it.each([1, 1_000])('takes %i of a limit of 1,000', (maxUncounted) => {
    const { policies } = limiterOf({ ...loose, async: { maxUncounted } })
    expect(policies[0]?.maxUncounted).toBe(maxUncounted)
  })

  it('stays legal when the limit becomes 0', () => {
    expect(limiterOf({ ...loose, limit: 0 }).policies[0]?.maxUncounted).toBe(50)
  })

  it('changes nothing in memory, which decides at once', async () => {
    const limiter = limiterOf({ ...loose, store: memoryStore() })
    for (let i = 0; i < 1_050; i += 1) {
      expect((await limiter.consume('k')).allowed).toBe(i < 1_000)
    }
    expect(limiter.storeHealth()).toMatchObject({ uncountedUnits: 0, uncountedBound: 0 })
  })
})
