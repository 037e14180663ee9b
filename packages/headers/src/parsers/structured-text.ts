import { parseDictionary, parseList } from 'structured-headers'
import { maxInteger } from '../values/policy-state.ts'

/** A member of a list. The sender chooses its types, so every reader checks them. */
export interface FieldItem {
  readonly value: unknown
  readonly parameters: ReadonlyMap<string, unknown>
}

/**
 * Returns the members of a List (RFC 9651 §4.2.1); none if there is no text, or if it is not a
 * List, since one error invalidates the whole field.
 */
export function listItems(text = ''): FieldItem[] {
  const members = parsed(() => parseList(text)) ?? []
  return members.map(([value, parameters]) => ({
    value: withoutSignedZero(value),
    parameters: new Map(
      [...parameters].map(([key, parameter]) => [key, withoutSignedZero(parameter)]),
    ),
  }))
}

/**
 * Returns the values of a Dictionary by key, without their parameters; `undefined` if the text is
 * not a Dictionary.
 */
export function dictionaryValues(text: string): ReadonlyMap<string, unknown> | undefined {
  const dictionary = parsed(() => parseDictionary(text))
  if (dictionary === undefined) return undefined
  const values = new Map<string, unknown>()
  for (const [key, [value]] of dictionary) values.set(key, withoutSignedZero(value))
  return values
}

/**
 * Returns whether a bare item is an Integer of at least `min`. A Decimal without a fraction looks
 * the same.
 */
export function isInteger(value: unknown, min: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= min && value <= maxInteger
}

/** Returns whether a parameter is absent or an Integer of at least `min`. */
export function isOptionalInteger(value: unknown, min: number): value is number | undefined {
  return value === undefined || isInteger(value, min)
}

/** Returns whether a parameter is absent or a Byte Sequence. */
export function isOptionalBytes(value: unknown): value is ArrayBuffer | undefined {
  return value === undefined || value instanceof ArrayBuffer
}

export function bytesOf(buffer: ArrayBuffer | undefined): Uint8Array | undefined {
  return buffer === undefined ? undefined : new Uint8Array(buffer)
}

/** "-0" is a legal way to write 0, and no reader should have to know. */
function withoutSignedZero(value: unknown): unknown {
  return value === 0 ? 0 : value
}

function parsed<T>(parse: () => T): T | undefined {
  try {
    return parse()
  } catch {
    // Clients must ignore malformed fields (draft-11 §7).
    return undefined
  }
}
