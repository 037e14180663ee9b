import { type ErrorCode, pageUrl, SluiceError } from './errors.ts'

/** The place of an option, for the error about its value. */
export interface OptionLabel {
  /** The option as the user writes it: `limit`, `policies[1].window`. */
  readonly option: string
  readonly code?: ErrorCode
}

export interface Range {
  readonly min: number
  readonly max?: number
}

/** Formats a value for messages: short, on one line, and never the text of a long secret. */
export function quote(value: unknown): string {
  if (typeof value === 'string') return `'${shortened(value)}'`
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (typeof value === 'bigint') return shortened(`${value}n`)
  if (typeof value === 'symbol') return 'a symbol'
  if (value === null || value === undefined) return String(value)
  if (Array.isArray(value)) return `an array of ${value.length}`
  return typeof value === 'object' ? kindOf(value) : `a ${typeof value}`
}

function shortened(text: string): string {
  return text.length > 40 ? `${onOneLine(text.slice(0, 40))}…` : onOneLine(text)
}

/**
 * Returns text that is safe in a log line. A client may have sent it, so characters that start a
 * new line, or move or hide other text, are escaped.
 */
export function onOneLine(text: string): string {
  return text.replace(unprintable, (character) => {
    return `\\u{${character.codePointAt(0)?.toString(16)}}`
  })
}

/** Control and format characters, line and paragraph separators, and unpaired surrogates. */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

function kindOf(value: object): string {
  const isPlain: boolean = isOptions(value)
  const name: unknown = isPlain ? undefined : value.constructor?.name
  if (typeof name !== 'string' || name === '') return 'an object'
  return name === 'Object' ? 'an object that inherits its fields' : `a ${shortened(name)}`
}

/** Returns whether a value is a whole number within a range. */
export function isWholeNumber(
  value: unknown,
  { min, max = Number.MAX_SAFE_INTEGER }: Range,
): value is number {
  return Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max
}

/** Returns a whole number in `range`; otherwise throws, naming the option and the fix. */
export function wholeNumber(value: unknown, label: OptionLabel, range: Range): number {
  if (isWholeNumber(value, range)) return value
  const { min, max = Number.MAX_SAFE_INTEGER } = range
  throw invalid(label, value, `a whole number from ${min} to ${max}`)
}

/** Returns an option, or its default if omitted. Null is a value: it may be a failed read. */
export function orDefault<T, D>(value: T | undefined, otherwise: D): T | D {
  return value === undefined ? otherwise : value
}

/** Returns an option that is one of several strings. Throws an error for other values. */
export function oneOf<T extends string>(
  value: unknown,
  label: OptionLabel,
  legal: readonly T[],
): T {
  const found = legal.find((item) => item === value)
  if (found !== undefined) return found
  throw invalid(label, value, `one of ${legal.map((item) => `'${item}'`).join(', ')}`)
}

/** Returns an option that is true or false, or its default. Throws an error for other values. */
export function flag(value: unknown, label: OptionLabel, otherwise: boolean): boolean {
  if (value === undefined) return otherwise
  if (typeof value === 'boolean') return value
  throw invalid(label, value, 'true or false')
}

/**
 * Returns whether a value can hold options: a plain object. A Map, a Promise or a Date would count
 * as an object without fields, and all its settings would be lost.
 */
export function isOptions(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  const prototype: object | null = Object.getPrototypeOf(value)
  if (prototype === null || prototype === Object.prototype) return true
  // The `Object.prototype` of another context of the process, as Jest has one for tests.
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'isPrototypeOf')
}

/** Throws if `options` is not a plain object, or has an unknown field; suggests a similar name. */
export function knownFields(options: unknown, where: string, known: readonly string[]): void {
  if (!isOptions(options)) {
    throw invalid({ option: where }, options, 'a plain object')
  }
  for (const field of Object.keys(options)) {
    if (known.includes(field)) continue
    throw new SluiceError(
      'SLUICE_OPTION_UNKNOWN',
      `${where}: there is no option ${quote(field)}${suggestion(field, known)}`,
    )
  }
}

/** Returns those of the fields that the options have. An option of `undefined` does not count. */
export function givenFields(
  options: object,
  fields: readonly string[],
): readonly (readonly [field: string, value: unknown])[] {
  return Object.entries(options).filter(
    ([field, value]) => value !== undefined && fields.includes(field),
  )
}

/** Maximum number of names in a message. */
const maxListed = 12

/** Suggests the option that was probably meant, or lists the options: a guard has fifty. */
function suggestion(field: string, known: readonly string[]): string {
  const meant = proxyTrust.test(field) ? 'addressOf' : misnomers.get(field)
  const observed = /^on[A-Z]/.test(field) ? 'observers' : undefined
  const near = [meant, known.find((name) => isNear(name, field)), observed].find(
    (name) => name !== undefined && known.includes(name),
  )
  if (near !== undefined) return ` (did you mean '${near}'?)`
  if (known.length <= maxListed) return `; the options are ${known.join(', ')}`
  const listed = `all options are listed in ${pageUrl('options')}`
  if (proxyTrust.test(field)) return `; ${frameworkTrust}; ${listed}`
  const words = wordsOf(field)
  const closest = known
    .filter((name) => wordsOf(name).some((word) => words.includes(word)))
    .slice(0, 3)
    .map((name) => `'${name}'`)
  if (closest.length === 0) return `; ${listed}`
  return `; the closest ${closest.length === 1 ? 'is' : 'are'} ${closest.join(', ')}; ${listed}`
}

/** Splits a camel-case name into lower-case words, without common ones. */
function wordsOf(name: string): readonly string[] {
  const words = name.split(/(?=[A-Z])|[^A-Za-z]/).map((word) => word.toLowerCase())
  return words.filter((word) => word.length > 2)
}

/** The frameworks' setting for trusted proxies, in any spelling. */
const proxyTrust = /^trust(ed)?[\s_-]*prox(y|ies)$/i

const frameworkTrust =
  "configure proxies in the framework, not in the limiter: app.set('trust proxy', 1) in Express, " +
  "fastify({ trustProxy: '<address of the proxy>' }), app.proxy in Koa"

/** Option names of other limiters, with Sluice's names. */
const misnomers: ReadonlyMap<string, string> = new Map(
  Object.entries({
    limit: 'max points',
    window: 'windowMs timeWindow duration ttl',
    key: 'keyGenerator getTracker ipv6Subnet',
    name: 'identifier keyPrefix',
    headers: 'githubExtras standardHeaders legacyHeaders enableDraftSpec addHeaders',
    allow: 'allowList whitelist',
    block: 'blockList blacklist',
    store: 'redis cache storeClient',
    message: 'errorResponseBuilder errorMessage',
    penalty: 'ban blockDuration exponentialBackoff',
    profiles: 'groupId',
    chargeWhen: 'skipSuccessfulRequests',
    refundWhen: 'skipFailedRequests',
    failureMode: 'passOnStoreError skipOnError',
  }).flatMap(([name, theirs]) => theirs.split(' ').map((word) => [word, name] as const)),
)

/** Returns whether two names start alike, or differ in one letter or two neighbouring ones. */
function isNear(name: string, field: string): boolean {
  const [a, b] = [name.toLowerCase(), field.toLowerCase()]
  if (a.slice(0, 3) === b.slice(0, 3) && Math.abs(a.length - b.length) <= 2) return true
  // The field may be long, and of a stranger.
  if (a.length < 3 || Math.abs(a.length - b.length) > 1) return false
  return variants(a).some((text) => variants(b).includes(text))
}

/** Returns a name, and the name without each of its letters. Names with a small typo share one. */
function variants(name: string): readonly string[] {
  return [name, ...[...name].map((_, at) => name.slice(0, at) + name.slice(at + 1))]
}

/** Creates the error for an option, with its name, value and legal values. */
export function invalid(label: OptionLabel, value: unknown, legal: string): SluiceError {
  return new SluiceError(
    label.code ?? 'SLUICE_OPTION_INVALID',
    `${label.option} must be ${legal}, but is ${quote(value)}`,
  )
}
