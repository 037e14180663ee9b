import { invalid, orDefault, wholeNumber } from '@sluice/core'

type Options<Name extends string> = { readonly [name in Name]?: unknown }

/** Returns an option that is a whole number in a range, or its default. */
export function whole<Name extends string>(
  options: Options<Name>,
  option: Name,
  { otherwise, ...range }: { otherwise: number; min: number; max?: number },
): number {
  return wholeNumber(orDefault(options[option], otherwise), { option }, range)
}

/** @throws SluiceError when an option that is not left out is no function */
export function checkFunction<Name extends string>(
  options: Options<Name>,
  option: Name,
  what: string,
): void {
  const value = options[option]
  if (value !== undefined && typeof value !== 'function') throw invalid({ option }, value, what)
}
