import {
  checkTogether,
  createLimiter,
  flag,
  given,
  invalid,
  knownFields,
  type Limiter,
  type LimiterOptions,
  type LimiterSettings,
  limiterFields,
  oneOf,
  type Policy,
  policyList,
  SluiceError,
  show,
  warnOnce,
  wholeNumber,
} from '@sluice/core'
import { checkDialects, type Dialect, policyNameProblem } from '@sluice/headers'
import { type AccessLists, accessLists } from '../access/lists.ts'
import { ip } from '../keys/ip.ts'
import { type MissingKey, missingKeyModes } from '../keys/missing-key.ts'
import { evidenceOf } from '../keys/resolver.ts'
import { checkSettlement, type RuleSettlement, settlementOf } from '../lifecycle/settlement.ts'
import type { Scope } from '../routes/scope.ts'
import { type Report, reporter } from '../user-functions.ts'
import {
  checkCounting,
  checkRule,
  corePolicy,
  type Rule,
  ruleFields,
  ruleOf,
  shorthandFields,
} from './bound-policy.ts'
import type { HttpPolicyOptions, PolicyGuardOptions, Preflights } from './options.ts'
import { corePenalty, penaltyRule } from './penalty.ts'
import { idempotencyFields, idempotencyOf, Replays } from './retries.ts'

/** What is said of a guard beside the user's options. */
export interface GuardPlace {
  /** What the user calls the guard, for messages. */
  readonly where: string
  /** Options of the adapter's own, which the guard leaves alone. */
  readonly adapterFields?: readonly string[] | undefined
  /**
   * The scope alone, and not the order in which guards are made, tells its private policies from those of others: for guards that
   * are made on first use, in another order in each process.
   * @default false
   */
  readonly identifiedByScope?: boolean | undefined
  /** Where its private policies count apart. @default where each request finds the guard */
  readonly scope?: Scope | undefined
  /** Whether the admission was given here, beside the policies that it may name. @default true */
  readonly checksAdmission?: boolean | undefined
}

/** Rules that are decided with those of a guard, and belong to one around it. */
export interface RulesAround<Native> {
  /** Those that the guard's own are added to. */
  readonly addedTo?: readonly Rule<Native>[] | undefined
  /** Policies by name that are one quota with the routes around, and when they give back: the options of the guard do not say so. */
  readonly shared?: ReadonlyMap<string, RuleSettlement<Native> | undefined> | undefined
  readonly penalty?: Rule<Native> | undefined
}

/** The checked options of a guard, with the defaults filled in. */
export interface GuardSetup<Native extends object> {
  readonly limiter: Limiter
  /** Whether a denial is a strike only once the request is refused. */
  readonly strikesLater: boolean
  /** That of the penalty is the last. */
  readonly rules: readonly Rule<Native>[]
  readonly penalty: Rule<Native> | undefined
  readonly onMissingKey: MissingKey
  /** `undefined`: as their answers tell. */
  readonly preflights: Preflights | undefined
  /** Retries that cost nothing; `undefined`: none do. */
  readonly replays: Replays<Native> | undefined
  /** Who passes, or is refused, without being counted; `undefined` where nobody is. */
  readonly lists: AccessLists | undefined
  readonly report: Report
  readonly dialects: readonly Dialect[]
  readonly exposeHeaders: boolean
  readonly hideOnRedirect: boolean
  readonly githubExtras: boolean
  readonly retryJitter: number
  readonly maxWaiting: number
  readonly statusCode: number
}

const guardFields: readonly string[] = [
  'policies',
  ...ruleFields,
  'onMissingKey',
  'preflights',
  'admission',
  ...idempotencyFields,
  'skip',
  'allow',
  'block',
  'shed',
  'headers',
  'exposeHeaders',
  'hideOnRedirect',
  'githubExtras',
  'retryJitter',
  'maxWaiting',
  'statusCode',
  'message',
  'handler',
  ...limiterFields,
]

/**
 * Checks the options of a guard.
 * @throws SluiceError that names the option, its value, the legal range and the fix
 */
export function setUpGuard<Native extends object, Handler>(
  options: PolicyGuardOptions<Native, Handler>,
  {
    where,
    adapterFields = [],
    identifiedByScope = false,
    scope,
    checksAdmission = true,
  }: GuardPlace,
  { addedTo = [], shared, penalty: penaltyAround }: RulesAround<Native> = {},
): GuardSetup<Native> {
  knownFields(options, where, [...guardFields, ...adapterFields])
  checkFunctions(options)
  checkCounting(options, (field) => field)
  checkSettlement(options, (field) => field)
  const listed = policyList<HttpPolicyOptions<Native>>(options, shorthandFields)
  for (const [policy, at] of listed) checkRule(policy, at)
  const limiter = createLimiter(
    limiterOptions(
      options,
      listed.map(([policy]) => corePolicy(policy)),
    ),
  )
  const defaults = {
    key: options.key ?? ip(),
    cost: options.cost ?? 1,
    settlement: settlementOf(options),
    scope,
  }
  for (const { name } of limiter.policies) checkName(name)
  if (limiter.penalty) checkName(limiter.penalty.name)
  const own = limiter.policies.map((policy, index) => {
    const identified = identifiedByScope ? scopedPolicy(policy, index) : policy
    const rule = ruleOf(identified, listed[index]?.[0] ?? {}, defaults)
    return shared?.has(policy.name) ? { ...rule, settlement: shared.get(policy.name) } : rule
  })
  const penalty = limiter.penalty
    ? penaltyRule(options, {
        policy: identifiedByScope ? scopedPolicy(limiter.penalty, own.length) : limiter.penalty,
        key: defaults.key,
        // Whom `limiter.block` names is blocked wherever the guard stands.
        scope: identifiedByScope ? scope : '',
      })
    : penaltyAround
  const rules = [...addedTo, ...own, ...(penalty ? [penalty] : [])]
  if (addedTo.length > 0) checkTogether(rules.map(({ policy }) => policy))
  warnIfUnverified([...addedTo, ...own])
  const { admission } = options
  if (checksAdmission) admission?.checkPolicies?.(rules.map(({ policy }) => policy))
  const idempotency = idempotencyOf(options)
  return {
    limiter,
    strikesLater: admission?.overflows === true && penalty !== undefined,
    rules,
    penalty,
    onMissingKey: oneOf(
      given(options.onMissingKey, 'ip'),
      { option: 'onMissingKey' },
      missingKeyModes,
    ),
    preflights:
      options.preflights === undefined
        ? undefined
        : oneOf<Preflights>(options.preflights, { option: 'preflights' }, ['pass', 'count']),
    replays:
      idempotency &&
      new Replays({
        idempotency,
        limiter,
        rules,
        options: limiterFieldsOf(options),
      }),
    lists: accessLists(options),
    report: reporter(options),
    dialects: dialects(options.headers),
    exposeHeaders: flag(options.exposeHeaders, { option: 'exposeHeaders' }, false),
    hideOnRedirect: flag(options.hideOnRedirect, { option: 'hideOnRedirect' }, false),
    githubExtras: flag(options.githubExtras, { option: 'githubExtras' }, false),
    retryJitter: share(given(options.retryJitter, 0), 'retryJitter'),
    maxWaiting: wholeNumber(
      given(options.maxWaiting, 10_000),
      { option: 'maxWaiting' },
      { min: 0 },
    ),
    statusCode: wholeNumber(
      given(options.statusCode, 429),
      { option: 'statusCode' },
      { min: 400, max: 599 },
    ),
  }
}

/** The limiter's part of the options, in the form that the user chose, so that its messages name what the user wrote. */
function limiterOptions<Native, Handler>(
  options: PolicyGuardOptions<Native, Handler>,
  policies: readonly ReturnType<typeof corePolicy>[],
): LimiterOptions {
  const all = { ...limiterFieldsOf(options), ...corePenalty(options) }
  const [only] = policies
  return only && options.policies === undefined ? { ...all, ...only } : { ...all, policies }
}

/** What the options say of the limiter beside its policies and its penalty. */
function limiterFieldsOf<Native, Handler>(
  options: PolicyGuardOptions<Native, Handler>,
): LimiterSettings {
  const { penalty: _, ...others } = options
  const fields: readonly string[] = limiterFields
  return Object.fromEntries(Object.entries(others).filter(([field]) => fields.includes(field)))
}

function checkFunctions({
  admission,
  skip,
  message,
  handler,
}: PolicyGuardOptions<never, unknown>): void {
  if (admission !== undefined && typeof admission?.take !== 'function') {
    throw invalid({ option: 'admission' }, admission, 'what createAdmission({ queue, … }) makes')
  }
  if (skip !== undefined && typeof skip !== 'function') {
    throw invalid({ option: 'skip' }, skip, 'a function of the request')
  }
  if (handler !== undefined && handler !== 'throw' && typeof handler !== 'function') {
    throw invalid({ option: 'handler' }, handler, `a function that replies, or 'throw'`)
  }
  const isMessage = ['undefined', 'string', 'object', 'function'].includes(typeof message)
  if (isMessage && message !== null) return
  throw invalid({ option: 'message' }, message, 'a text, an object, or a function that finds one')
}

/** Core tells private policies of one shape apart by a number, in the order in which they were made. */
function scopedPolicy(policy: Policy, index: number): Policy {
  if (policy.named) return policy
  const { algorithm, limit, windowMs } = policy
  return {
    ...policy,
    id: `~scoped-${algorithm}-${limit}-${windowMs}-${index}`,
  }
}

/** Core refuses what no header can carry; this is about names that a later draft, or a metrics system, may not like. */
function checkName(name: string): void {
  if (policyNameProblem(name) === undefined) return
  warnOnce(
    `the policy name '${name}' is legal, but not everywhere: best are letters, digits, '.', '_' and '-', a letter ` +
      `first, 64 at most`,
  )
}

/** Where an address has a limit too, made-up credentials get no further than that. */
function warnIfUnverified<Native>(rules: readonly Rule<Native>[]): void {
  const evidence = rules.map(({ key }) => evidenceOf(key))
  if (!evidence.includes('unverified') || evidence.includes('address')) return
  warnOnce(
    `a limiter counts by apiKey() or bearer() without verify, and so believes every credential: a client that makes up a new one for each request, ` +
      `to guess passwords, say, is never limited. Give verify, as in apiKey({ verify: (key) => issued.has(key) }); or, if something before the ` +
      `limiter refuses unknown credentials, verify: false`,
    'credentials that nobody verifies',
  )
}

function dialects(value: PolicyGuardOptions<never>['headers']): readonly Dialect[] {
  try {
    return checkDialects(given(value, ['draft-11', 'legacy']))
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : show(value)
    throw new SluiceError('SLUICE_OPTION_INVALID', reason, { cause })
  }
}

function share(value: unknown, option: string): number {
  if (typeof value === 'number' && value >= 0 && value <= 1) return value
  throw invalid({ option }, value, 'a number from 0 to 1')
}
