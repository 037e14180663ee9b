/** Names in other clients, with the option of this client. The first known one counts. */
const meant: readonly (readonly [guess: RegExp, option: string])[] = [
  [/delay/i, 'backoffMs'],
  [/timeout/i, 'maxTotalWaitMs'],
  [/timeout/i, 'maxWaitMs'],
  [/retr|attempt/i, 'retries'],
]

// A table of options is a class, since declarations keep docstrings. Each field declares one option
// by its docstring, the type that users write, and the check that fills in the default.

/** An optional setting: returns its effective value, or throws. */
export type Option<Written, Value = Written | undefined> = (
  value: Written | undefined,
  option: string,
) => Value

/** The options that users write, according to their table. */
export type OptionsOf<Table> = {
  [Name in keyof Table]: NonNullable<Table[Name]> extends Option<infer Written, unknown>
    ? Written | undefined
    : never
}

/** The effective values. */
export type SettingsOf<Table> = {
  readonly [Name in keyof Table]-?: NonNullable<Table[Name]> extends Option<never, infer Value>
    ? Value
    : never
}

/**
 * Checks options against their table. Throws if they are not a plain object or have an unknown
 * field; suggests a similar name.
 */
export function readOptions<Table extends object>(
  table: Table,
  options: OptionsOf<Table>,
  where: string,
): SettingsOf<Table> {
  if (!isPlain(options)) {
    throw new TypeError(`${where} takes an object of options, but got ${show(options)}`)
  }
  const known = Object.keys(table)
  const unknown = Object.keys(options).find((field) => !known.includes(field))
  if (unknown === undefined) {
    const settings = Object.entries(table).map(([name, check]): readonly unknown[] => [
      name,
      check(Reflect.get(options, name), name),
    ])
    return Object.fromEntries(settings)
  }
  const near =
    meant.find(([guess, name]) => guess.test(unknown) && known.includes(name))?.[1] ??
    known.find((name) => name.slice(0, 3) === unknown.slice(0, 3))
  const hint = near === undefined ? '' : ` (did you mean '${near}'?)`
  throw new TypeError(
    `${where}: there is no option '${unknown}'${hint}; the options are ${known.join(', ')}`,
  )
}

/** True for an object literal. A Map or a Promise would be options that set nothing. */
function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  const prototype: object | null = Object.getPrototypeOf(value)
  // `Object.prototype` may be that of another realm, such as a frame.
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

function legal<T>(otherwise: T, form: string, isLegal: (value: T) => boolean): Option<T, T> {
  return (value = otherwise, option) => {
    if (isLegal(value)) return value
    throw invalid(option, value, form)
  }
}

/** A bound in ms, which may be `Infinity`. */
export function boundOption(otherwise: number): Option<number, number> {
  const form = 'a number of milliseconds, 0 or more, or Infinity'
  return legal(otherwise, form, (ms) => typeof ms === 'number' && ms >= 0)
}

/** A time in ms. */
export function msOption(otherwise: number): Option<number, number> {
  const form = 'a number of milliseconds, 0 or more'
  return legal(otherwise, form, (ms) => Number.isFinite(ms) && ms >= 0)
}

export function countOption(otherwise: number): Option<number, number> {
  const form = 'a whole number, 0 or more'
  return legal(otherwise, form, (count) => Number.isSafeInteger(count) && count >= 0)
}

export function flagOption(otherwise: boolean): Option<boolean, boolean> {
  return legal(otherwise, 'true or false', (value) => typeof value === 'boolean')
}

/** An absolute URL of http or https, or none. */
export function webUrl(value: string | URL | undefined, option: string): string | undefined {
  if (value === undefined) return undefined
  const text = String(value)
  if (/^https?:/i.test(text) && URL.canParse(text)) return new URL(text).href
  throw invalid(option, value, 'an absolute URL of http or https')
}

/** A function, or none. */
export function functionOption<T>(value: T, option: string): T {
  if (value === undefined || typeof value === 'function') return value
  throw invalid(option, value, 'a function')
}

/** A list of legal items, or the default. */
export function listOption<T>(
  otherwise: readonly T[],
  form: string,
  isLegal: (item: unknown) => boolean,
): Option<readonly T[], readonly T[]> {
  return (value = otherwise, option) => {
    if (!Array.isArray(value)) throw invalid(option, value, `an array of ${form}`)
    const wrong = value.findIndex((item) => !isLegal(item))
    if (wrong === -1) return value
    throw invalid(`${option}[${wrong}]`, value[wrong], `one of ${form}`)
  }
}

function invalid(option: string, value: unknown, legal: string): TypeError {
  return new TypeError(`${option} must be ${legal}, but is ${show(value)}`)
}

export function show(value: unknown): string {
  if (typeof value === 'string') return `'${value.slice(0, 40)}'`
  if (typeof value === 'function') return 'a function'
  if (value instanceof Promise) return 'a promise'
  if (Array.isArray(value)) return `an array of ${value.length}`
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}
