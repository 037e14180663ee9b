import * as core from '@sluice/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { scaled } from '../support/scale.ts'
import { keepHistory, note, replayed, times } from './figures.ts'
import { brokenBy, fleetKinds, plans, runFleet } from './fleet.ts'

describe.each(Object.entries(fleetKinds))('a fleet that decides by %s', (name, kind) => {
  it('keeps its promises, whatever its network, clocks and processes do', {
    timeout: 180_000 * times,
  }, async ({ task }) => {
    let [fleets, requests] = [0, 0]
    await fc.assert(
      fc.asyncProperty(plans, async (plan) => {
        const run = await runFleet(core, kind, plan)
        const broken = brokenBy(kind, run)
        fleets += 1
        requests += run.lines.length
        if (broken.length > 0) keepHistory(`fleet ${name}`, run.lines)
        expect(broken).toEqual([])
      }),
      {
        numRuns: Math.ceil(scaled(5, 900) * times),
        // Shrinking takes minutes: a failure shows its path, and a run with that path shrinks.
        endOnFailure: replayed.path === undefined,
        // The same fleets in each run of the tests, so that chance judges no change. Others: npm run evidence.
        seed: 20_261_124,
        ...replayed,
      },
    )
    note(task, { fleets, requests })
  })
})
