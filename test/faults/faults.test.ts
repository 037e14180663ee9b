import { describe, expect, it } from 'vitest'
import { runCell } from './cell.ts'
import { faults } from './faults.ts'
import { judge } from './judge.ts'

/** One short cell for each fault; `npm run test:faults` runs all of them, longer, and with strict bounds. */
describe.concurrent('an API whose limits are counted in Redis', () => {
  it.for(faults)('answers, limits and recovers: $name', { timeout: 60_000 }, async (fault) => {
    const cell = await runCell({
      fault,
      size: 1,
      frameworks: ['express'],
      rates: { fallback: 100 },
      beforeMs: 500,
      lastsMs: 1_500,
    })
    const [fleet] = cell.fleets
    if (!fleet) throw new Error('no fleet ran')
    // Machines that run tests are busy: the strict bounds are those of the full run.
    const verdict = judge(cell, fleet, { overDeadlineMs: 400, openP99Ms: undefined })
    expect(verdict.problems).toEqual([])
    expect(verdict.answered).toBe(verdict.requests)
    expect(verdict.requests).toBeGreaterThan(100)
  })
})
