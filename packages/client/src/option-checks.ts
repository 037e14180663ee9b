/** Names in other clients, with the option of this client. The first known one counts. */
const meant: readonly (readonly [guess: RegExp, option: string])[] = [
  [/delay/i, 'backoffMs'],
  [/timeout/i, 'maxTotalWaitMs'],
  [/timeout/i, 'maxWaitMs'],
  [/retr|attempt/i, 'retries'],
]

interface Reading<Options, Settings> {
  readonly where: string
  read(options: Options): Settings
  readonly others?: readonly string[]
}

/**
 * Reads options. Throws when they are no plain object, or have a field that is neither read nor in
 * `others`; a near miss is proposed.
 */
export function onlyKnown<Options, Settings extends object>(
  options: Options,
  { where, read, others = [] }: Reading<Options, Settings>,
): Settings {
  if (!isPlain(options)) {
    throw new TypeError(`${where} takes an object of options, but got ${show(options)}`)
  }
  const settings = read(options)
  const known = [...Object.keys(settings), ...others]
  const unknown = Object.keys(options).find((field) => !known.includes(field))
  if (unknown === undefined) return settings
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

/** Returns a bound in ms, which may be `Infinity`. */
export function bound(value: number | undefined, option: string, otherwise: number): number {
  if (value === undefined) return otherwise
  if (typeof value === 'number' && value >= 0) return value
  throw invalid(option, value, 'a number of milliseconds, 0 or more, or Infinity')
}

export function duration(value: number | undefined, option: string, otherwise: number): number {
  if (value === undefined) return otherwise
  if (Number.isFinite(value) && value >= 0) return value
  throw invalid(option, value, 'a number of milliseconds, 0 or more')
}

export function count(value: number | undefined, option: string, otherwise: number): number {
  if (value === undefined) return otherwise
  if (Number.isSafeInteger(value) && value >= 0) return value
  throw invalid(option, value, 'a whole number, 0 or more')
}

export function flag(value: boolean | undefined, option: string, otherwise: boolean): boolean {
  if (value === undefined) return otherwise
  if (typeof value === 'boolean') return value
  throw invalid(option, value, 'true or false')
}

/** Returns an absolute http or https URL, or `undefined` where the option was left out. */
export function webUrl(value: string | URL | undefined, option: string): string | undefined {
  if (value === undefined) return undefined
  const text = String(value)
  if (/^https?:/i.test(text) && URL.canParse(text)) return new URL(text).href
  throw invalid(option, value, 'an absolute URL of http or https')
}

/** Returns a function, or `undefined` where the option was left out. */
export function optionalFunction<T>(value: T, option: string): T {
  if (value === undefined || typeof value === 'function') return value
  throw invalid(option, value, 'a function')
}

export function list<T>(
  value: readonly T[] | undefined,
  option: { readonly name: string; readonly legal: string; isLegal(item: unknown): boolean },
  otherwise: readonly T[],
): readonly T[] {
  if (value === undefined) return otherwise
  if (!Array.isArray(value)) throw invalid(option.name, value, `an array of ${option.legal}`)
  const wrong = value.findIndex((item) => !option.isLegal(item))
  if (wrong === -1) return value
  throw invalid(`${option.name}[${wrong}]`, value[wrong], `one of ${option.legal}`)
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
