import fc from 'fast-check'

/** What an arbitrary draws. */
export type Drawn<A> = A extends fc.Arbitrary<infer Value> ? Value : never

/** Draws from one of some arbitraries: from each as often as its weight says. */
export function weighted<Values extends readonly unknown[]>(
  ...choices: {
    readonly [Index in keyof Values]: readonly [
      weight: number,
      arbitrary: fc.Arbitrary<Values[Index]>,
    ]
  }
): fc.Arbitrary<Values[number]> {
  return fc.oneof(...choices.map(([weight, arbitrary]) => ({ weight, arbitrary })))
}
