import type { NamedCode, NamedValue } from '@sluice/http'
import { all, defineKey, firstOf, header, ip, type KeyResolver, route, user } from '@sluice/http'
import type { PolicyFile } from '@sluice/policies'
import { detached } from '../formats/log-format.ts'
import type { LogRequest } from '../formats/log-request.ts'
import { CliError } from '../terminal/exit-codes.ts'
import type { ReplayOptions } from './replay-options.ts'

/** The code that a policy file refers to, as far as a log can replace it. */
export interface CodeOfLog {
  readonly code: NamedCode<LogRequest>
  /** Assumptions about values missing from the log. */
  readonly notes: readonly string[]
  /** Returns, after a replay, the values of --key that no request had. */
  unmatched(): readonly string[]
}

/** A part of a request on the command line: `header:x-tenant`, `field:plan`, `status:401`. */
interface Given {
  readonly kind: 'ip' | 'header' | 'field' | 'status'
  readonly name: string
}

/** A place in a policy file that names a function, and the assumption without it. */
interface Place {
  readonly about: string
  readonly assumed: unknown
  readonly as: 'text' | 'number' | 'truth'
}

const places: Readonly<Record<string, Place>> = {
  cost: { about: 'the cost of a request', assumed: 1, as: 'number' },
  limit: { about: 'a limit', assumed: undefined, as: 'number' },
  tiers: { about: 'the tier of a request', assumed: undefined, as: 'text' },
  skip: { about: 'requests to skip', assumed: false, as: 'truth' },
  enforce: { about: 'requests to enforce a policy for', assumed: true, as: 'truth' },
  chargeWhen: { about: 'responses that count', assumed: true, as: 'truth' },
  refundWhen: { about: 'responses to refund', assumed: false, as: 'truth' },
}

/**
 * Finds replacements for the code that a policy file refers to.
 * @param file the data of the policy file
 * @throws CliError if `--key` or `--value` is wrong, or a key is missing
 */
export function codeOfLog(
  file: unknown,
  { key, value }: Pick<ReplayOptions, 'key' | 'value'>,
): CodeOfLog {
  const givenKeys = givenBy(key, '--key', ['ip', 'header', 'field'])
  const givenValues = givenBy(value, '--value', ['header', 'field', 'status'])
  const found = new Map<Given, boolean>()
  const uses = [...namesIn(file)]
  const notes = uses.flatMap(([name, place]) => {
    const { about, assumed } = places[place] ?? { about: '', assumed: undefined }
    if (givenValues.has(name)) return []
    const instead = assumed === undefined ? 'the default' : String(assumed)
    return [
      `'${name}' in code computes ${about}, which is not in the log: ${instead} is assumed; pass --value ${name}=field:NAME if the log has it`,
    ]
  })
  return {
    code: {
      keys: {
        ip: foundOnce(ipOfLog()),
        ...Object.fromEntries(
          [...givenKeys].map(([name, given]) => [name, foundOnce(resolverOf(given, found))]),
        ),
      },
      values: Object.fromEntries(
        uses.map(([name, place]) => [name, functionOf(places[place], givenValues.get(name))]),
      ),
    },
    notes,
    unmatched: () =>
      [...givenKeys].flatMap(([name, given]) =>
        found.get(given) === false
          ? [
              `no request has a value for --key ${name}=${given.kind}:${given.name}; check its name in the log, or pass --key ${name}=ip`,
            ]
          : [],
      ),
  }
}

function givenBy(
  texts: readonly string[],
  option: string,
  kinds: readonly Given['kind'][],
): ReadonlyMap<string, Given> {
  return new Map(
    texts.map((text) => {
      const [, name, word, rest = ''] = /^([^=]+)=(\w+)(?::(.+))?$/.exec(text) ?? []
      const kind = kinds.find((each) => each === word)
      if (name && kind && (kind === 'ip') === (rest === '')) return [name, { kind, name: rest }]
      const legal = kinds.map((each) => (each === 'ip' ? each : `${each}:${samples[each]}`))
      throw new CliError(
        `${option} ${text} must be a name of the policy file and a value of the log: NAME=${legal.join(`, NAME=`)}`,
      )
    }),
  )
}

const samples: Readonly<Record<string, string>> = {
  header: 'x-tenant',
  field: 'user.id',
  status: '401,403',
}

/** Parses `tenant=header:x-tenant`: a key by name. @throws CliError if it is invalid */
export function namedKey(
  text: string,
  option: string,
): { readonly name: string; readonly resolver: KeyResolver<LogRequest> } {
  if (text === 'ip') return { name: text, resolver: ip() }
  const [found] = givenBy([text], option, ['ip', 'header', 'field'])
  const [name = text, given] = found ?? []
  return { name, resolver: given ? resolverOf(given) : ip() }
}

/** @param found records for each requested key whether any request had it */
function resolverOf(given: Given, found = new Map<Given, boolean>()): KeyResolver<LogRequest> {
  const { kind, name } = given
  if (kind === 'ip') return ip()
  const noted = <Value>(value: Value): Value => {
    if (found.get(given) !== true) found.set(given, value !== undefined && value !== '')
    return value
  }
  if (kind === 'field') return user((request: LogRequest) => noted(request.field(name)))
  const resolver = header(name)
  const read: KeyResolver<LogRequest> = (native, request) => noted(resolver(native, request))
  return Object.assign(defineKey(read), { keyOf: resolver.keyOf })
}

/** Finds the key of a request once, although the guard and the replay both need it. */
function foundOnce(resolver: KeyResolver<LogRequest>): KeyResolver<LogRequest> {
  let latest: LogRequest | undefined
  let key: ReturnType<typeof resolver>
  const once = defineKey<LogRequest>((native, request) => {
    if (native !== latest) {
      latest = native
      key = resolver(native, request)
    }
    return key
  })
  // Overrides ask its `keyOf` for the keys of identities.
  return Object.assign(once, resolver)
}

/** Number of IPv6 addresses whose keys are cached, since parsing one takes microseconds. */
const maxKnown = 65_536

/** Like `ip()`. With so many clients, an IPv4 key is faster to build than to look up. */
function ipOfLog(): KeyResolver<LogRequest> {
  const { keyOf } = ip()
  const known = new Map<string, string>()
  const lookUp = (address: string): string => {
    const found = known.get(address)
    if (found !== undefined) return found
    if (known.size >= maxKnown) known.clear()
    const key = keyOf(address)
    known.set(detached(address), key)
    return key
  }
  const resolver = defineKey<LogRequest>((_, { ip: address }) => {
    if (address === undefined) return undefined
    return address.includes(':') ? lookUp(address) : keyOf(address)
  })
  return Object.assign(resolver, { keyOf })
}

export function keyOf(
  entry: NonNullable<PolicyFile['key']>,
  given: Readonly<Record<string, KeyResolver<LogRequest>>>,
): KeyResolver<LogRequest> {
  if (typeof entry !== 'string') {
    const resolvers = ('all' in entry ? entry.all : entry.firstOf).map((name) => keyOf(name, given))
    return 'all' in entry ? all(...resolvers) : firstOf(...resolvers)
  }
  return given[entry] ?? (entry === 'route' ? route() : ip())
}

function functionOf(place: Place | undefined, given: Given | undefined): NamedValue<LogRequest> {
  if (!given) return () => place?.assumed
  const { kind, name } = given
  if (kind === 'status') {
    const known = new Set(name.split(',').map(Number))
    return (request) => known.has(request.status)
  }
  return (request) => {
    const text = kind === 'header' ? request.header(name) : request.field(name)
    if (text === undefined) return place?.assumed
    if (place?.as === 'number') return Number(text)
    return place?.as === 'truth' ? text === 'true' || text === '1' : text
  }
}

/** The names of functions in a policy file, each with its field. */
function* namesIn(value: unknown, field = ''): Generator<readonly [name: string, place: string]> {
  if (typeof value !== 'object' || value === null) return
  const by: unknown = Reflect.get(value, 'by')
  if (typeof by === 'string') yield [by, 'tiers' in value ? 'tiers' : field]
  for (const [name, inner] of Object.entries(value)) {
    yield* namesIn(inner, Array.isArray(value) ? field : name)
  }
}
