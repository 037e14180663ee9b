import { parseDictionary, parseList } from 'structured-headers'
import { maxInteger } from '../values/policy-state.ts'

/** Values by key. The sender chooses their types, so every reader checks them. */
type FieldValues = Readonly<Record<string, unknown>>

/** A member of a list. */
export interface FieldItem {
  readonly value: unknown
  readonly parameters: FieldValues
}

/**
 * Returns the members of a List (RFC 9651 §4.2.1); none if there is no text, or if it is not a
 * List, since one error invalidates the whole field.
 */
export function listItems(text = ''): FieldItem[] {
  const members = parsed(() => parseList(text)) ?? []
  return members.map(([value, parameters]) => ({
    value: withoutSignedZero(value),
    parameters: valuesOf(parameters),
  }))
}

/**
 * Returns the values of a Dictionary, without their parameters; none if the text is not a
 * Dictionary.
 */
export function dictionaryValues(text = ''): FieldValues {
  const members = parsed(() => parseDictionary(text)) ?? []
  return valuesOf(Array.from(members, ([key, [value]]) => [key, value]))
}

/**
 * Returns whether a bare item is an Integer of at least `min`. A Decimal without a fraction looks
 * the same.
 */
export function isInteger(value: unknown, min = 0): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= min && value <= maxInteger
}

function valuesOf(entries: Iterable<readonly [key: string, value: unknown]>): FieldValues {
  return Object.fromEntries(Array.from(entries, ([key, value]) => [key, withoutSignedZero(value)]))
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
