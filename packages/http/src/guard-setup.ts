import {
  checkTogether,
  createLimiter,
  flag,
  given,
  invalid,
  knownFields,
  type Limiter,
  type LimiterOptions,
  limiterFields,
  notify,
  oneOf,
  type Policy,
  policyList,
  SluiceError,
  show,
  warnOnce,
  wholeNumber,
} from '@sluice/core'
import { checkDialects, type Dialect, policyNameProblem } from '@sluice/headers'
import type { GuardOptions } from './guard-options.ts'
import type { HttpPolicyOptions } from './http-policy.ts'
import { ip } from './keys/ip.ts'
import { type MissingKey, missingKeyModes } from './keys/missing-key.ts'
import type { Scope } from './routes/scope.ts'
import { shorthandFields } from './routes/shorthand-fields.ts'
import {
  checkCounting,
  checkRule,
  corePolicy,
  type Report,
  type Rule,
  ruleFields,
  ruleOf,
} from './rule.ts'

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
}

/** The checked options of a guard, with the defaults filled in. */
export interface GuardSetup<Native> {
  readonly limiter: Limiter
  readonly rules: readonly Rule<Native>[]
  readonly onMissingKey: MissingKey
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
  'admission',
  'skip',
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
export function setUpGuard<Native, Handler>(
  options: GuardOptions<Native, Handler>,
  { where, adapterFields = [], identifiedByScope = false, scope }: GuardPlace,
  addedTo: readonly Rule<Native>[] = [],
): GuardSetup<Native> {
  knownFields(options, where, [...guardFields, ...adapterFields])
  checkFunctions(options)
  checkCounting(options, (field) => field)
  const listed = policyList<HttpPolicyOptions<Native>>(options, shorthandFields)
  for (const [policy, at] of listed) checkRule(policy, at)
  const limiter = createLimiter(
    limiterOptions(
      options,
      listed.map(([policy]) => corePolicy(policy)),
    ),
  )
  const defaults = { key: options.key ?? ip(), cost: options.cost ?? 1, scope }
  for (const { name } of limiter.policies) checkName(name)
  const own = limiter.policies.map((policy, index) => {
    const identified = identifiedByScope ? scopedPolicy(policy, index) : policy
    return ruleOf(identified, listed[index]?.[0] ?? {}, defaults)
  })
  const rules = [...addedTo, ...own]
  if (addedTo.length > 0) checkTogether(rules.map(({ policy }) => policy))
  return {
    limiter,
    rules,
    onMissingKey: oneOf(
      given(options.onMissingKey, 'ip'),
      { option: 'onMissingKey' },
      missingKeyModes,
    ),
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
  options: GuardOptions<Native, Handler>,
  policies: readonly ReturnType<typeof corePolicy>[],
): LimiterOptions {
  const ownFields: readonly string[] = limiterFields
  const own = Object.fromEntries(
    Object.entries(options).filter(([field]) => ownFields.includes(field)),
  )
  return options.policies === undefined ? { ...own, ...policies[0] } : { ...own, policies }
}

function checkFunctions({ admission, skip, message, handler }: GuardOptions<never, unknown>): void {
  if (admission !== undefined && typeof admission?.take !== 'function') {
    throw invalid({ option: 'admission' }, admission, 'what createAdmission({ queue, … }) makes')
  }
  if (skip !== undefined && typeof skip !== 'function') {
    throw invalid({ option: 'skip' }, skip, 'a function of the request')
  }
  if (handler !== undefined && typeof handler !== 'function') {
    throw invalid({ option: 'handler' }, handler, 'a function that replies')
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

/** Tells the observer, or, where nobody observes, warns once for each place: the value itself could be anything. */
function reporter({ onInvalid }: Pick<LimiterOptions, 'onInvalid'>): Report {
  return (code, place, detail) => {
    if (onInvalid) notify(onInvalid, { code, message: `${place}: ${detail}` })
    else
      warnOnce(
        `${place} yielded a value that is not legal; its default, or its last value, stood in (onInvalid tells more)`,
      )
  }
}

function dialects(value: GuardOptions<never>['headers']): readonly Dialect[] {
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
