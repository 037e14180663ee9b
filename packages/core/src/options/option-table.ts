import type { Duration } from './duration.ts'
import { flag, invalid, knownFields, oneOf, orDefault, type Range, wholeNumber } from './options.ts'

// A table of options is a class. Each field of it declares one option: its docstring says what the
// option does and its default, its type what users may write, and its value checks that. A class,
// because declarations keep the docstrings, and editors show them at the options.

/**
 * An optional setting: returns its effective value. The check throws an error that names the
 * option, the value, the legal range and the fix.
 */
export type Option<Written, Value = Written | undefined> = RequiredOption<
  Written | undefined,
  Value
>

/** A required option. */
export type RequiredOption<Written, Value = Written> = (value: Written, option: string) => Value

/** The options that users write, according to their table. */
export type OptionsOf<Table> = {
  [Name in keyof Table]: NonNullable<Table[Name]> extends RequiredOption<infer Written, unknown>
    ? Written
    : never
}

/** Options that may be omitted or `undefined`. */
export type Optional<T> = { [Field in keyof T]?: T[Field] | undefined }

/** Fields that must be omitted. */
export type Without<Field extends string> = { [field in Field]?: undefined }

/** The effective values: checked, with defaults. */
export type SettingsOf<Table> = {
  readonly [Name in keyof Table]-?: NonNullable<Table[Name]> extends RequiredOption<
    never,
    infer Value
  >
    ? Value
    : never
}

/**
 * Checks options against their table, and fills in defaults.
 * @param where the function that takes the options, for messages
 * @throws SluiceError if an option is unknown or out of range
 */
export function readOptions<Table extends object>(
  table: Table,
  options: OptionsOf<Table>,
  where: string,
): SettingsOf<Table> {
  knownFields(options, where, Object.keys(table))
  return checkOptions(table, options, (name) => name)
}

/**
 * Checks the options of a table, and ignores others.
 * @param at returns the name of an option as the user writes it, for messages
 */
export function checkOptions<Table extends object>(
  table: Table,
  options: object,
  at: (name: string) => string,
): SettingsOf<Table> {
  const settings = Object.entries(table).map(([name, check]): readonly unknown[] => [
    name,
    check(Reflect.get(options, name), at(name)),
  ])
  return Object.fromEntries(settings)
}

/** A whole number, or the default. */
export function countOption(otherwise: number, range: Range): Option<number, number> {
  return (value, option) => wholeNumber(orDefault(value, otherwise), { option }, range)
}

/** True or false. */
export function flagOption(otherwise: boolean): Option<boolean, boolean> {
  return (value, option) => flag(value, { option }, otherwise)
}

/** One of several strings. */
export function choiceOption<T extends string>(otherwise: T, legal: readonly T[]): Option<T, T> {
  return (value, option) => oneOf(orDefault(value, otherwise), { option }, legal)
}

/** A duration, converted to ms by the function that bounds it. */
export function durationOption(
  otherwise: Duration,
  inMs: (value: unknown, option: string) => number,
): Option<Duration, number> {
  return (value, option) => inMs(orDefault(value, otherwise), option)
}

/** A function, or none. */
export function functionOption(
  legal: string,
): <Written>(value: Written | undefined, option: string) => Written | undefined {
  return (value, option) => {
    if (value === undefined || typeof value === 'function') return value
    throw invalid({ option }, value, legal)
  }
}

/** A string of some format, or the default. */
export function textOption(otherwise: string, form: RegExp, legal: string): Option<string, string> {
  return (value, option) => {
    const text: unknown = orDefault(value, otherwise)
    if (typeof text === 'string' && form.test(text)) return text
    throw invalid({ option }, text, legal)
  }
}

/** An object with its own options. */
export function objectOption<Table extends object>(
  table: Table,
): Option<OptionsOf<Table>, SettingsOf<Table>> {
  return (value, option) => {
    knownFields(orDefault(value, {}), option, Object.keys(table))
    return checkOptions(table, value ?? {}, (name) => `${option}.${name}`)
  }
}

/** An option that is checked together with others, or where it is used. */
export function checkedElsewhere<Written>(value: Written): Written {
  return value
}
