import { unknownOutcome } from '../engine/outcome.ts'
import type { Check } from '../model/check.ts'
import type { Outcome, Store } from '../model/store.ts'

/** Returns the members that a store of a region has of its two stores. */
export function partsOf(local: Store, global: Store): Partial<Store> {
  return {
    name: 'regional',
    grantsUnits: local.grantsUnits ?? false,
    ...(local.denials && { denials: local.denials }),
    keys: {
      ...(local.keys?.digestOf && { digestOf: local.keys.digestOf.bind(local.keys) }),
      ...(local.keys?.keyFor && { keyFor: local.keys.keyFor.bind(local.keys) }),
    },
    ...(local.telemetry && { telemetry: local.telemetry }),
    ...(global.documents && { documents: global.documents }),
    ...(global.scripts && { scripts: global.scripts }),
  }
}

export function asChecked(
  checks: readonly Check[],
  outcomes: readonly Outcome[],
  adapt: (check: Check, outcome: Outcome) => Outcome,
): readonly Outcome[] {
  return outcomes.map((outcome, index) => {
    const check = checks[index]
    return check ? adapt(check, outcome) : outcome
  })
}

/** Puts outcomes into the order of the checks. Of two for one check the later one counts. */
export function inOrder(
  checks: readonly Check[],
  parts: readonly (readonly [checks: readonly Check[], outcomes: readonly Outcome[]])[],
): readonly Outcome[] {
  const found = new Map<Check, Outcome>()
  for (const [asked, outcomes] of parts) {
    for (const [index, outcome] of outcomes.entries()) {
      const check = asked[index]
      if (check) found.set(check, { ...outcome, policy: check.policy, limit: check.limit })
    }
  }
  return checks.map((check) => found.get(check) ?? unknownOutcome(check))
}
