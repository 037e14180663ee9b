import {
  type AutomaticPenalty,
  checkedElsewhere,
  checkOptions,
  choiceOption,
  countOption,
  type EnforcedShare,
  flagOption,
  functionOption,
  invalid,
  isOptions,
  type ManualPenalty,
  type MaybePromise,
  type Option,
  type OptionsOf,
  orDefault,
  quote,
  type SettingsOf,
  SluiceError,
  wholeNumber,
} from '@sluice/core'
import { checkDialects, type Dialect } from '@sluice/headers'
import { type AccessList, type AccessListOptions, readList } from '../access/lists.ts'
import { all, firstOf } from '../keys/combine.ts'
import { apiKey, bearer, header } from '../keys/headers.ts'
import { tenant, user } from '../keys/identity.ts'
import { ip } from '../keys/ip.ts'
import { type MissingKey, missingKeyModes } from '../keys/missing-key.ts'
import type { KeyResolver } from '../keys/resolver.ts'
import { route } from '../keys/route.ts'
import { type ShedOptions, type ShedSettings, shedSettings } from '../limits/shedder.ts'
import type { RequestDecision } from '../request/passage.ts'
import type { PerRequest } from '../request/user-functions.ts'
import type { Admission } from './admission.ts'
import type { ResponseCondition } from './settlement.ts'

/** The body of a refusal: a string, or an object that is sent as JSON. */
export type Message = string | object

/** Treatment of CORS preflights: they count like other requests, or pass uncounted. */
export type Preflights = 'pass' | 'count'

interface KeyedPenalty<Native> {
  /** Identifies the client whose denials count and who is blocked. @default the guard's `key` */
  key?: KeyResolver<Native> | undefined
}

/**
 * A penalty for HTTP requests. It may block a different identity from the one that the policies
 * count.
 */
export type GuardPenalty<Native> = (AutomaticPenalty | ManualPenalty) & KeyedPenalty<Native>

const responseFunction = functionOption('a function of the request and its response')

/** The policy options that guards and routes have too. */
export class SharedTable<Native> {
  /** Identifies the client to count: `user(fn)`, or a function of the request. @default ip() */
  key?: Option<KeyResolver<Native>> = (value, option) => {
    if (value !== undefined) checkResolver(value, option)
    return value
  }
  /** Units that a request takes: a whole number ≥ 0, or a function that returns one. @default 1 */
  cost?: Option<PerRequest<Native, number>> = (value, option) => {
    if (value === undefined || typeof value === 'function') return value
    return wholeNumber(value, { option, code: 'SLUICE_COST_INVALID' }, { min: 0 })
  }
  /**
   * Holds units while a request runs. The handler spends them: `request.rateLimit.spend(n)`. A
   * function returns how many to hold; `true` holds the `cost`. For `sliding-log` and
   * `fixed-window`. See docs/budgets.md.
   * @default false
   */
  reserve?: Option<boolean | ((native: Native) => MaybePromise<number>)> = (value, option) => {
    if (['undefined', 'boolean', 'function'].includes(typeof value)) return value
    throw invalid({ option }, value, 'true, or a function that returns the units')
  }
  /**
   * Limit to use if a limit function returns neither a whole number ≥ 0 nor `unlimited`. Required
   * with a limit function.
   */
  defaultLimit?: Option<number> = checkedElsewhere
  /**
   * Gives back the units of a request unless this function returns true for the response:
   * `(req, { status }) => status === 401` counts failed logins. A client that disconnects early is
   * charged. @default every response counts
   */
  chargeWhen?: Option<ResponseCondition<Native>> = responseFunction
  /**
   * Gives back the units of a request if this function returns true for the response:
   * `(req, { status }) => status >= 500`. @default never
   */
  refundWhen?: Option<ResponseCondition<Native>> = responseFunction
  /**
   * Clients against which the policy is enforced: a share of the keys, or a function of the
   * request. For others, the policy is in shadow mode.
   * @default everybody
   */
  enforce?: Option<EnforcedShare | ((native: Native) => MaybePromise<boolean>)> = checkedElsewhere
}

/**
 * The options that HTTP adds to one list of policies. Functions may be async; their errors go to
 * the framework's error handling.
 * @typeParam Native the framework's request
 * @typeParam Handler the function with which the framework's users reply
 */
export class GuardTable<Native, Handler = never> extends SharedTable<Native> {
  /** Clients whose requests pass uncounted and without headers. @default nobody */
  allow?: Option<AccessListOptions, AccessList | undefined> = readList
  /**
   * Clients that are refused with 403, without a call to the store, even if `allow` lists them.
   * @default nobody
   */
  block?: Option<AccessListOptions, AccessList | undefined> = readList
  /**
   * Blocks keys passed to `limiter.block`, and clients that are denied too often, for longer each
   * time. Applies to all routes of the guard, except those with their own or `false`.
   * @default none
   */
  penalty?: Option<GuardPenalty<Native> | false> = (value, option) => {
    if (value === undefined || value === false) return value
    if (!isOptions(value)) {
      const legal = `false, or options, as in { after: 10, within: '1m', for: '5m' } or { after: 'never' }`
      throw invalid({ option }, value, legal)
    }
    if (value.key !== undefined) checkResolver(value.key, `${option}.key`)
    return value
  }
  /** Action for requests without a key. @default 'ip' */
  onMissingKey?: Option<MissingKey, MissingKey> = choiceOption('ip', missingKeyModes)
  /**
   * Key that a client repeats in a retry, so that both requests are charged as one: `true` for the
   * Idempotency-Key header, or a resolver. A retry has the same key, method, path, cost and
   * identity as the request before it. In the longest window of the policies, three retries are
   * free. `false`: none, for a route.
   * @default none: every request is charged
   */
  idempotencyKey?: Option<boolean | KeyResolver<Native>, KeyResolver<Native> | undefined> = (
    value,
    option,
  ) => {
    if (value === true) return header('idempotency-key')
    if (value === undefined || value === false) return undefined
    if (typeof value === 'function') return value
    const legal = 'true for the header Idempotency-Key, a resolver such as header(name), or false'
    throw invalid({ option }, value, legal)
  }
  /**
   * Counts CORS preflights (OPTIONS with `Origin` and `Access-Control-Request-Method`) like other
   * requests, or lets them pass uncounted. With `'pass'`, whatever runs for OPTIONS behind the
   * limiter is not limited: any client can send requests of that shape. Blocked clients are still
   * refused. Put CORS middleware before the limiter instead, so that it answers preflights first.
   * @default 'count', with a warning at the first preflight
   */
  preflights?: Option<Preflights> = (value, option) =>
    value === undefined
      ? value
      : choiceOption<Preflights>('count', ['pass', 'count'])(value, option)
  /**
   * Puts requests in a queue, before the application sees them or instead of a refusal.
   * @default none
   */
  admission?: Option<Admission<Native>> = (value, option) => {
    if (value === undefined || typeof Object(value).take === 'function') return value
    throw invalid({ option }, value, 'the result of createAdmission({ queue, … })')
  }
  /** Returns true for requests that pass uncounted and without headers. @default none */
  skip?: Option<(native: Native) => MaybePromise<boolean>> = functionOption(
    'a function of the request',
  )
  /**
   * Rate-limit headers to send; `[]` for Retry-After alone. If several limiters write to one
   * response, the first one chooses the IETF draft and the kind of legacy fields.
   * @default ['draft-11', 'legacy']
   */
  headers?: Option<readonly Dialect[], readonly Dialect[]> = dialects
  /** Lists the headers in Access-Control-Expose-Headers for cross-origin scripts. @default false */
  exposeHeaders?: Option<boolean, boolean> = flagOption(false)
  /** Removes the headers from redirects: some clients wait before following them. @default false */
  hideOnRedirect?: Option<boolean, boolean> = flagOption(false)
  /**
   * Adds a random time to Retry-After, up to this share (0 to 1) of the wait, so that clients do
   * not all come back at once.
   * @default 0
   */
  retryJitter?: Option<number, number> = (value, option) => {
    const share = orDefault(value, 0)
    if (typeof share === 'number' && share >= 0 && share <= 1) return share
    throw invalid({ option }, share, 'a number from 0 to 1')
  }
  /**
   * `leaky-bucket` only: maximum number of requests that this process holds, a whole number ≥ 0.
   * Further requests are refused with 503 and not charged.
   * @default 10_000
   */
  maxWaiting?: Option<number, number> = countOption(10_000, { min: 0 })
  /**
   * Under load, refuses less important classes of requests first, with 503 and no charge.
   * @default none
   */
  shed?: Option<ShedOptions<Native>, ShedSettings<Native> | undefined> = shedSettings
  /**
   * Replaces the problem body of a refused request: a string, an object (sent as JSON), or a
   * function that returns one.
   */
  message?: Option<
    Message | ((native: Native, decision: RequestDecision) => MaybePromise<Message>)
  > = (value, option) => {
    const isMessage = ['undefined', 'string', 'object', 'function'].includes(typeof value)
    if (isMessage && value !== null) return value
    throw invalid({ option }, value, 'a string, an object, or a function that returns one')
  }
  /**
   * Status of a refused request, 400 to 599. Refusals that are not the client's fault are always
   * 503: a store that failed, a full delay queue, a limit that is reduced for now.
   * @default 429
   */
  statusCode?: Option<number, number> = countOption(429, { min: 400, max: 599 })
  /**
   * Replies to a refused request instead of Sluice. Its last argument is the decision; status and
   * headers are already set. `'throw'` passes a `RateLimitError` to the framework's error handling.
   */
  handler?: Option<Handler | 'throw'> = (value, option) => {
    if (value === undefined || value === 'throw' || typeof value === 'function') return value
    throw invalid({ option }, value, `a function that replies, or 'throw'`)
  }
}

export type Settings<Native, Handler> = Omit<SettingsOf<GuardTable<Native, Handler>>, 'penalty'>

/** Only one of each pair can be set. */
export const rivals = [
  ['chargeWhen', 'refundWhen', 'since they may contradict each other: use only one'],
  ['message', 'handler', 'since only one of them can reply: let the handler send the message'],
] as const

/**
 * Checks the HTTP options of a guard or a policy, and fills in defaults.
 * @param at returns the name of a field as the user writes it, for messages
 * @throws SluiceError that names the option, its value, the legal range and the fix
 */
export function checkHttpOptions<Table extends object>(
  table: Table,
  options: OptionsOf<Table>,
  at: (field: string) => string = (field) => field,
): SettingsOf<Table> {
  const settings = checkOptions(table, options, at)
  for (const [one, other, reason] of rivals) {
    if ([one, other].some((name) => Reflect.get(options, name) === undefined)) continue
    throw new SluiceError(
      'SLUICE_OPTION_INVALID',
      `${at(one)} and ${at(other)} cannot be combined, ${reason}`,
    )
  }
  return settings
}

function dialects(value: readonly Dialect[] | undefined): readonly Dialect[] {
  try {
    return checkDialects(orDefault(value, ['draft-11', 'legacy']))
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : quote(value)
    throw new SluiceError('SLUICE_OPTION_INVALID', reason, { cause })
  }
}

/** Functions that create resolvers but are not resolvers. */
const factories: readonly { readonly name: string }[] = [
  ...[all, apiKey, bearer, firstOf, header, ip, route, tenant, user],
]

/** Throws for an option that is not a resolver, and for a resolver factory that was not called. */
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
