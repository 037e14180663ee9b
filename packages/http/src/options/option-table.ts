import {
  flag,
  invalid,
  type LimiterSettings,
  limiterFields,
  oneOf,
  orDefault,
  type PolicyFields,
  policyFields,
  quote,
  SluiceError,
  wholeNumber,
} from '@sluice/core'
import { checkDialects, type Dialect } from '@sluice/headers'
import { AccessList } from '../access/lists.ts'
import { all, firstOf } from '../keys/combine.ts'
import { apiKey, bearer, header } from '../keys/headers.ts'
import { tenant, user } from '../keys/identity.ts'
import { ip } from '../keys/ip.ts'
import { type MissingKey, missingKeyModes } from '../keys/missing-key.ts'
import { route } from '../keys/route.ts'
import type { GuardFields, Preflights } from './options.ts'

/** The owner of options: a guard, a route, or one policy in `policies` or `profiles`. */
export type OptionOwner = 'guard' | 'route' | 'policy'

interface OptionRow<Value> {
  readonly owners: readonly OptionOwner[]
  /** Checks the option, and fills in its default. `option` names it in messages. */
  check(value: unknown, option: string): Value
}

/** The options that are plain values, checked and with their defaults. */
export interface Settings {
  readonly allow: AccessList | undefined
  readonly block: AccessList | undefined
  readonly exposeHeaders: boolean
  readonly headers: readonly Dialect[]
  readonly hideOnRedirect: boolean
  readonly maxWaiting: number
  readonly onMissingKey: MissingKey
  /** `undefined`: they count, and the first one causes a warning. */
  readonly preflights: Preflights | undefined
  readonly retryJitter: number
  readonly statusCode: number
}

/** The options of HTTP. Core lists and checks the options of its policies and limiters. */
type HttpOption = Exclude<
  keyof GuardFields<never> | 'combine',
  keyof PolicyFields | keyof LimiterSettings
>

/** The values that checks yield: nothing for an option that is read elsewhere. */
type Checked = Settings & Record<Exclude<HttpOption, keyof Settings>, void>

function inGuards<Value>(check: OptionRow<Value>['check']): OptionRow<Value> {
  return { owners: ['guard', 'route'], check }
}

function everywhere<Value>(check: OptionRow<Value>['check']): OptionRow<Value> {
  return { owners: ['guard', 'route', 'policy'], check }
}

/** One row for each option. A new option does not compile without one. */
const table: { readonly [Name in HttpOption]: OptionRow<Checked[Name]> } = {
  admission: inGuards((value) => {
    if (value === undefined || hasMethod(value, 'take')) return
    throw invalid({ option: 'admission' }, value, 'what createAdmission({ queue, … }) makes')
  }),
  allow: inGuards(accessList),
  block: inGuards(accessList),
  chargeWhen: everywhere(aFunction('a function of the request and its response')),
  combine: { owners: ['route'], check: whereItIsRead },
  cost: everywhere((value, option) => {
    if (value === undefined || typeof value === 'function') return
    wholeNumber(value, { option, code: 'SLUICE_COST_INVALID' }, { min: 0 })
  }),
  defaultLimit: everywhere(whereItIsRead),
  exposeHeaders: inGuards((value, option) => flag(value, { option }, false)),
  handler: inGuards((value, option) => {
    if (value === undefined || value === 'throw' || typeof value === 'function') return
    throw invalid({ option }, value, `a function that replies, or 'throw'`)
  }),
  headers: inGuards(dialects),
  hideOnRedirect: inGuards((value, option) => flag(value, { option }, false)),
  idempotencyKey: inGuards((value, option) => {
    if (value === undefined || typeof value === 'boolean' || typeof value === 'function') return
    const legal = 'true for the header Idempotency-Key, a resolver such as header(name), or false'
    throw invalid({ option }, value, legal)
  }),
  key: everywhere((value, option) => {
    if (value !== undefined) checkResolver(value, option)
  }),
  maxWaiting: inGuards((value, option) =>
    wholeNumber(orDefault(value, 10_000), { option }, { min: 0 }),
  ),
  message: inGuards((value, option) => {
    const isMessage = ['undefined', 'string', 'object', 'function'].includes(typeof value)
    if (isMessage && value !== null) return
    throw invalid({ option }, value, 'a text, an object, or a function that finds one')
  }),
  onMissingKey: inGuards((value, option) =>
    oneOf(orDefault(value, 'ip'), { option }, missingKeyModes),
  ),
  policies: inGuards(whereItIsRead),
  preflights: inGuards((value, option) =>
    value === undefined ? undefined : oneOf<Preflights>(value, { option }, ['pass', 'count']),
  ),
  profiles: { owners: ['guard'], check: whereItIsRead },
  refundWhen: everywhere(aFunction('a function of the request and its response')),
  retryJitter: inGuards((value, option) => {
    const share = orDefault(value, 0)
    if (typeof share === 'number' && share >= 0 && share <= 1) return share
    throw invalid({ option }, share, 'a number from 0 to 1')
  }),
  routes: { owners: ['guard'], check: whereItIsRead },
  shed: inGuards(whereItIsRead),
  skip: inGuards(aFunction('a function of the request')),
  statusCode: inGuards((value, option) =>
    wholeNumber(orDefault(value, 429), { option }, { min: 400, max: 599 }),
  ),
}

const rows: readonly (readonly [name: string, row: OptionRow<unknown>])[] = Object.entries(table)

/** The names of the options that an owner may have. */
export function optionsOf(owner: OptionOwner): readonly string[] {
  const core = owner === 'policy' ? ['failureMode'] : limiterFields
  const own = rows.filter(([, { owners }]) => owners.includes(owner)).map(([name]) => name)
  return [...policyFields, ...core, ...own]
}

/**
 * Checks the HTTP options of an owner.
 * @param at the name of a field as the user writes it, for messages
 * @throws SluiceError that names the option, its value, the legal range and the fix
 */
export function checkOptions(
  options: object,
  owner: OptionOwner,
  at: (field: string) => string,
): void {
  for (const [name, { owners, check }] of rows) {
    if (owners.includes(owner)) check(Reflect.get(options, name), at(name))
  }
}

/** The options that are plain values, with their defaults. */
export function settingsOf(options: Partial<Record<keyof Settings, unknown>>): Settings {
  const read = <Name extends keyof Settings>(name: Name): Settings[Name] =>
    table[name].check(options[name], name)
  return {
    allow: read('allow'),
    block: read('block'),
    exposeHeaders: read('exposeHeaders'),
    headers: read('headers'),
    hideOnRedirect: read('hideOnRedirect'),
    maxWaiting: read('maxWaiting'),
    onMissingKey: read('onMissingKey'),
    preflights: read('preflights'),
    retryJitter: read('retryJitter'),
    statusCode: read('statusCode'),
  }
}

/** For an option that the module which reads it checks, together with others. */
function whereItIsRead(): void {
  // Nothing to check by itself.
}

function aFunction(legal: string): (value: unknown, option: string) => void {
  return (value, option) => {
    if (value !== undefined && typeof value !== 'function') throw invalid({ option }, value, legal)
  }
}

function hasMethod(value: unknown, name: string): boolean {
  const isObject = typeof value === 'object' && value !== null
  return isObject && typeof Reflect.get(value, name) === 'function'
}

function accessList(value: unknown, option: string): AccessList | undefined {
  return value === undefined ? undefined : AccessList.read(value, option)
}

function dialects(value: unknown): readonly Dialect[] {
  try {
    return checkDialects(orDefault(value, ['draft-11', 'legacy']))
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : quote(value)
    throw new SluiceError('SLUICE_OPTION_INVALID', reason, { cause })
  }
}

/** Functions that make resolvers, and are none. */
const factories: readonly { readonly name: string }[] = [
  all,
  apiKey,
  bearer,
  firstOf,
  header,
  ip,
  route,
  tenant,
  user,
]

/** Throws for an option that is no resolver, and for a factory of resolvers that was not called. */
export function checkResolver(resolver: unknown, option: string): void {
  if (typeof resolver !== 'function') {
    throw invalid({ option }, resolver, 'a resolver such as apiKey(), or a function of the request')
  }
  const factory = factories.find((make) => make === resolver)
  if (!factory) return
  throw invalid(
    { option },
    resolver,
    `called, as in ${option.split('.').at(-1)}: ${factory.name}(…)`,
  )
}
