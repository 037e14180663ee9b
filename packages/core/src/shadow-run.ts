import type { Decision } from './decision.ts'
import { isPromise, type MaybePromise } from './maybe-promise.ts'
import type { Outcome } from './store.ts'

/** What the policies in shadow came to for one request: a decision for each, since each is judged alone. It may come later than the request's. */
export class ShadowRun {
  /** Never rejects. */
  readonly decisions: MaybePromise<readonly Decision[]>
  #known: readonly Decision[] = []

  constructor(decisions: readonly MaybePromise<Decision>[]) {
    this.decisions = isAllKnown(decisions)
      ? this.#learn(decisions)
      : Promise.all(decisions).then((known) => this.#learn(known))
  }

  /** What is known by now. */
  get outcomes(): readonly Outcome[] {
    return this.#known.flatMap(({ outcomes }) => outcomes)
  }

  /** A decision may be written to a log, and this carries identities. */
  toJSON(): undefined {
    return undefined
  }

  #learn(known: readonly Decision[]): readonly Decision[] {
    this.#known = known
    return known
  }
}

function isAllKnown(
  decisions: readonly MaybePromise<Decision>[],
): decisions is readonly Decision[] {
  return !decisions.some(isPromise)
}
