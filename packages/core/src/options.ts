import { type ErrorCode, SluiceError } from './errors.ts'

/** What an option is told about itself, so that its message names the place. */
export interface Place {
  /** The option as the user writes it: `limit`, `policies[1].window`. */
  readonly option: string
  readonly code?: ErrorCode
}

export interface Range {
  readonly min: number
  readonly max?: number
}

/** A value as it stands in a message: short, and never the text of a long secret. */
export function show(value: unknown): string {
  if (typeof value === 'string') return `'${value.length > 40 ? `${value.slice(0, 40)}…` : value}'`
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'symbol') return 'a symbol'
  if (value === null || value === undefined) return String(value)
  if (Array.isArray(value)) return `an array of ${value.length}`
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

export function isWholeNumber(
  value: unknown,
  { min, max = Number.MAX_SAFE_INTEGER }: Range,
): value is number {
  return Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max
}

/** Returns `value` when it is a whole number in `range`, else throws an error that names the option and the fix. */
export function wholeNumber(value: unknown, place: Place, range: Range): number {
  if (isWholeNumber(value, range)) return value
  const { min, max = Number.MAX_SAFE_INTEGER } = range
  throw invalid(place, value, `a whole number from ${min} to ${max}`)
}

/** An option, or its default where it was left out. Null is not left out: it may be a setting that could not be read. */
export function given<T, D>(value: T | undefined, otherwise: D): T | D {
  return value === undefined ? otherwise : value
}

export function oneOf<T extends string>(value: unknown, place: Place, legal: readonly T[]): T {
  const found = legal.find((item) => item === value)
  if (found !== undefined) return found
  throw invalid(place, value, `one of ${legal.map((item) => `'${item}'`).join(', ')}`)
}

export function flag(value: unknown, place: Place, otherwise: boolean): boolean {
  if (value === undefined) return otherwise
  if (typeof value === 'boolean') return value
  throw invalid(place, value, 'true or false')
}

/** Whether a value can hold options: an object, and no list. */
export function isOptions(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Throws when `options` is no object, or has a field outside of `known`; a near miss is proposed. */
export function knownFields(options: unknown, where: string, known: readonly string[]): void {
  if (!isOptions(options)) {
    throw invalid({ option: where }, options, 'an object')
  }
  for (const field of Object.keys(options)) {
    if (known.includes(field)) continue
    throw new SluiceError(
      'SLUICE_OPTION_UNKNOWN',
      `${where}: there is no option '${field}'${whatIsMeant(field, known)}`,
    )
  }
}

/** As many names as fit on a line or two. */
const mostListed = 12

/** Says which option was probably meant, or which there are: a guard has fifty. */
function whatIsMeant(field: string, known: readonly string[]): string {
  const near = [meant[field], known.find((name) => isNear(name, field))].find(
    (name) => name !== undefined && known.includes(name),
  )
  if (near !== undefined) return ` (did you mean '${near}'?)`
  if (known.length <= mostListed) return `; the options are ${known.join(', ')}`
  const closest = known
    .map((name) => ({ name, shared: sharedPairs(name, field) }))
    .filter(({ shared }) => shared > 1)
    .sort((one, other) => other.shared - one.shared)
    .slice(0, 3)
    .map(({ name }) => `'${name}'`)
  const listed = 'all options are listed in docs/options.md'
  return closest.length === 0 ? `; ${listed}` : `; the closest are ${closest.join(', ')}; ${listed}`
}

/** How many pairs of neighbouring letters of a name stand in another one too. */
function sharedPairs(name: string, other: string): number {
  const [text, others] = [name.toLowerCase(), other.toLowerCase()]
  return [...text].filter((_, index) => {
    const pair = text.slice(index, index + 2)
    return pair.length === 2 && others.includes(pair)
  }).length
}

/** What users of other limiters write, in the words of this one. */
const meant: { readonly [field: string]: string | undefined } = {
  max: 'limit',
  points: 'limit',
  windowMs: 'window',
  timeWindow: 'window',
  duration: 'window',
  keyGenerator: 'key',
  standardHeaders: 'headers',
  legacyHeaders: 'headers',
  allowList: 'allow',
  whitelist: 'allow',
  blockList: 'block',
  blacklist: 'block',
}

/** Whether two names begin alike and are about as long, or have the same letters in another order. */
function isNear(name: string, field: string): boolean {
  const [a, b] = [name.toLowerCase(), field.toLowerCase()]
  const lettersOf = (text: string): string => [...text].sort().join('')
  if (lettersOf(a) === lettersOf(b)) return true
  return a.slice(0, 3) === b.slice(0, 3) && Math.abs(a.length - b.length) <= 2
}

export function invalid(place: Place, value: unknown, legal: string): SluiceError {
  return new SluiceError(
    place.code ?? 'SLUICE_OPTION_INVALID',
    `${place.option} must be ${legal}, but is ${show(value)}`,
  )
}
