import { describe, expect, it } from 'vitest'
import { scaled } from '../support/scale.ts'
import { runCell } from './cell.ts'
import { faults, faultsUnderGrants } from './faults.ts'
import { judge } from './judge.ts'

/** A fleet of one tells most; where the fleet is the point, it takes one. */
const cells = faults
  .filter(({ name }) => scaled(name.startsWith('frozen'), true))
  .map((fault) => ({
    fault,
    name: fault.name,
    size: fault.splitsFleet || fault.name.startsWith('unreachable') ? 4 : 1,
    prefetch: false,
  }))

const underGrants = scaled([], faultsUnderGrants).map((fault) => ({
  fault,
  name: `${fault.name}, with prefetch`,
  size: 1,
  prefetch: true,
}))

/**
 * `npm test` has a short cell of one fault, and `npm run test:proofs` one of each. `npm run test:faults` runs all of them, longer, and with
 * strict bounds.
 */
describe.concurrent('an API whose limits are counted in Redis', () => {
  it.for([...cells, ...underGrants])(
    'answers, limits and recovers: $name, fleet of $size',
    { timeout: 60_000 },
    async ({ fault, size, prefetch }) => {
      const cell = await runCell({
        fault,
        size,
        prefetch,
        frameworks: ['express'],
        rates: { fallback: 100 },
        // Longer than the default: on a busy machine Redis is late without a fault.
        deadlineMs: 250,
        // A fleet has to count itself first.
        beforeMs: size === 1 ? 500 : 2_000,
        lastsMs: size === 1 ? 1_500 : 2_500,
      })
      const [fleet] = cell.fleets
      if (!fleet) throw new Error('no fleet ran')
      // Machines that run tests are busy: the strict bounds are those of the full run.
      const verdict = judge(cell, fleet, {
        overDeadlineMs: 400,
        openP99Ms: undefined,
        isBusy: true,
      })
      expect(verdict.problems).toEqual([])
      expect(verdict.answered).toBe(verdict.requests)
      expect(verdict.requests).toBeGreaterThan(100)
    },
  )
})
