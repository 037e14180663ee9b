import fc from 'fast-check'

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
