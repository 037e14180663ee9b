import * as core from '@sluice/core'
import { checkHistory } from '@sluice/testing/histories'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { scaled } from '../support/scale.ts'
import { fleetKinds, plans, runFleet } from './fleet.ts'

describe.each(Object.entries(fleetKinds))('a fleet that decides by %s', (_, kind) => {
  it('keeps its word, whatever its network, clocks and processes do', { timeout: 60_000 }, () =>
    fc.assert(
      fc.asyncProperty(plans, async (plan) => {
        const { lines, law } = await runFleet(core, kind, plan)
        const { findings } = checkHistory(lines, { a: law })
        const broken = findings.filter(
          ({ kind: found }) => found === 'over-limit' || kind.promises?.includes(found),
        )
        expect(broken).toEqual([])
      }),
      // Shrinking takes minutes: a failure shows its seed, and a run with that seed shrinks.
      { numRuns: scaled(5, kind.regions ? 20 : 60), endOnFailure: !process.env.SHRINK },
    ),
  )
})
