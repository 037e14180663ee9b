import type { Store } from '../model/store.ts'
import type { MaybePromise } from '../runtime/maybe-promise.ts'

/** Returns the members that a store of a region has of its two stores. */
export function partsOf(local: Store, global: Store): Partial<Store> {
  return {
    name: 'regional',
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

/** Asks one of the stores about its checks, if there are any. Returns the answer to each check. */
export async function answersOf<C, Answer>(
  checks: readonly C[],
  ask: (checks: readonly C[]) => MaybePromise<readonly Answer[]>,
): Promise<ReadonlyMap<C, Answer>> {
  const answers = checks.length === 0 ? [] : await ask(checks)
  const found = new Map<C, Answer>()
  for (const [index, answer] of answers.entries()) {
    const check = checks[index]
    if (check !== undefined) found.set(check, answer)
  }
  return found
}
