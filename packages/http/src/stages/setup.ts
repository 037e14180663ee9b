import {
  type CheckLimiter,
  checkTogether,
  createCheckLimiter,
  givenFields,
  joinObservers,
  knownFields,
  type LimiterOptions,
  type LimiterSettings,
  limiterFields,
  type Optional,
  type Policy,
  policyList,
  SluiceError,
  warnOnce,
} from '@sluice/core'
import { policyNameProblem } from '@sluice/headers'
import { AccessLists } from '../access/lists.ts'
import { ip } from '../keys/ip.ts'
import { evidenceOf } from '../keys/resolver.ts'
import { reserving } from '../lifecycle/budgets.ts'
import type { DelayQueue } from '../lifecycle/delay-queue.ts'
import type { Decide } from '../lifecycle/found.ts'
import type { LoadShedder } from '../limits/shedder.ts'
import { isPerRequest } from '../limits/source.ts'
import {
  type BoundPolicy,
  bindPolicy,
  checkPolicy,
  corePolicy,
  shorthandFields,
} from '../options/bound-policy.ts'
import { noteNamedLimit } from '../options/named-limits.ts'
import { checkHttpOptions, GuardTable, type Settings } from '../options/option-table.ts'
import {
  type HttpPolicyFields,
  type HttpPolicyOptions,
  optionsOf,
  type PolicyGuardOptions,
} from '../options/options.ts'
import { corePenalty } from '../options/penalty.ts'
import { settlementOf } from '../options/settlement.ts'
import type { Scope } from '../request/exchange.ts'
import { type Report, reporter } from '../request/user-functions.ts'
import type { WholeOverride } from '../routes/overrides.ts'
import { Observation } from './observation.ts'

/** The place of one list of policies, in addition to the user's options. */
export interface PolicyGuardPlace<Native extends object> {
  /** The guard's name in the user's code, for messages. */
  readonly where: string
  /** The adapter's own options, which the guard ignores. */
  readonly adapterFields?: readonly string[] | undefined
  /** The place of its private policies; '' for the whole application. @default each context's */
  readonly scope?: Scope | undefined
  /**
   * True if only the scope identifies its private policies, not the order in which guards are
   * created. Guards created on first use have a different order in each process.
   * @default false
   */
  readonly identifiedByScope?: boolean | undefined
  /** True if an admission was set here, next to its policies. @default true */
  readonly checksAdmission?: boolean | undefined
  /** The parts that a route guard inherits from the surrounding guard. */
  readonly inherited?: Inherited<Native> | undefined
}

interface Inherited<Native extends object> {
  readonly addedTo: readonly BoundPolicy<Native>[]
  readonly shared: WholeOverride<Native, never>['shared']
  readonly penalty: BoundPolicy<Native> | undefined
  /** `undefined` if the guard has its own delay queue or shedder. */
  readonly delayQueue: DelayQueue | undefined
  readonly shedder: LoadShedder<Native> | undefined
}

/** The checked options of a guard, with the defaults filled in. */
export interface GuardSetup<Native extends object, Handler = unknown>
  extends Settings<Native, Handler> {
  readonly limiter: CheckLimiter
  readonly observation: Observation<Native>
  /** True if a denial is a strike only once the request is refused. */
  readonly strikesLater: boolean
  /** The policies without the penalty. */
  readonly quotas: readonly BoundPolicy<Native>[]
  /** All policies; the penalty is the last one. */
  readonly policies: readonly BoundPolicy<Native>[]
  readonly penalty: BoundPolicy<Native> | undefined
  /** Decides requests, if a policy has `reserve`. */
  readonly askReserving: Decide<Native> | undefined
  readonly lists: AccessLists | undefined
  readonly report: Report
  readonly where: string
}

/** Checks the options of a guard. @throws SluiceError with option, value, range and fix */
export function setUpGuard<Native extends object, Handler>(
  options: PolicyGuardOptions<Native, Handler>,
  place: PolicyGuardPlace<Native>,
): GuardSetup<Native, Handler> {
  const { where, adapterFields = [], checksAdmission = true, inherited } = place
  const kind = inherited ? 'route' : 'guard'
  knownFields(options, where, [...optionsOf(kind), ...adapterFields])
  const settings = checkHttpOptions(new GuardTable<Native, Handler>(), options)
  const { admission, allow, block, idempotencyKey: key } = settings
  const made = limiterOf(options, place)
  const { limiter, policies } = made
  if (checksAdmission) admission?.checkPolicies?.(policies.map(({ policy }) => policy))
  const observers = joinObservers(options)
  const askReserving = reserving(limiter, policies)
  if (askReserving && (key || admission)) {
    const [rival, reason] = key
      ? ['idempotencyKey', 'a retry repeats the work']
      : ['admission', 'a job runs after its response']
    throw new SluiceError(
      'SLUICE_OPTION_INVALID',
      `${rival} and reserve cannot be combined in ${where}, since ${reason}: remove one of them`,
    )
  }
  return {
    ...settings,
    ...made,
    observation: new Observation(observers, limiter.store),
    strikesLater: admission?.overflows === true && made.penalty !== undefined,
    askReserving,
    lists: allow || block ? new AccessLists(allow, block) : undefined,
    report: reporter(observers),
    where,
  }
}

/** Creates the limiter of a guard, and binds its policies to requests. */
function limiterOf<Native extends object, Handler>(
  options: PolicyGuardOptions<Native, Handler>,
  { where, scope, identifiedByScope, inherited }: PolicyGuardPlace<Native>,
): Pick<GuardSetup<Native>, 'limiter' | 'quotas' | 'policies' | 'penalty'> {
  const listed = policyList<HttpPolicyOptions<Native>>(options, shorthandFields)
  for (const [policy, at] of listed) checkPolicy(policy, at)
  const written = listed.map(([policy]) => policy)
  const addedTo = inherited?.addedTo ?? []
  const limiter = createCheckLimiter(limiterOptions(options, written.map(corePolicy)), [
    ...written.map(({ limit }) => isPerRequest(limit)),
    ...addedTo.map(({ policy }) => policy.limitPerRequest),
  ])
  const { key = ip(), cost = 1 } = options
  const defaults = { key, cost, settlement: settlementOf(options), scope }
  /** Gives private policies an id by their place: core numbers them in order of creation. */
  const identified = (policy: Policy, index: number): Policy => {
    if (!identifiedByScope || policy.named) return policy
    const { algorithm, limit, windowMs } = policy
    return { ...policy, id: `~scoped-${algorithm}-${limit}-${windowMs}-${index}` }
  }
  const own = limiter.policies.map((policy, index) => {
    const policyOptions: Optional<HttpPolicyFields<Native>> = written[index] ?? {}
    checkName(policy.name)
    if (policy.named && typeof policyOptions.limit === 'number') noteNamedLimit(policy, where)
    const bound = bindPolicy(identified(policy, index), policyOptions, defaults)
    const shared = inherited?.shared
    return shared?.has(policy.name) ? { ...bound, settlement: shared.get(policy.name) } : bound
  })
  let penalty = inherited?.penalty
  if (limiter.penalty && options.penalty) {
    checkName(limiter.penalty.name)
    penalty = bindPolicy(identified(limiter.penalty, own.length), options.penalty, {
      key,
      cost: 1,
      settlement: undefined,
      // A key blocked with `limiter.block` is blocked wherever the guard is mounted.
      scope: identifiedByScope ? scope : '',
    })
  }
  const quotas = [...addedTo, ...own]
  const policies = penalty ? [...quotas, penalty] : quotas
  if (inherited) checkTogether(policies.map(({ policy }) => policy))
  warnIfUnverified(quotas)
  return { limiter, quotas, policies, penalty }
}

/** Returns the limiter options in the form that the user chose, for its messages. */
function limiterOptions<Native, Handler>(
  options: PolicyGuardOptions<Native, Handler>,
  policies: readonly ReturnType<typeof corePolicy>[],
): LimiterOptions {
  const { penalty } = options
  const all = { ...limiterFieldsOf(options), ...(penalty && { penalty: corePenalty(penalty) }) }
  const [only] = policies
  return only && options.policies === undefined ? { ...all, ...only } : { ...all, policies }
}

export function limiterFieldsOf<Native, Handler>(
  options: PolicyGuardOptions<Native, Handler>,
): LimiterSettings {
  const { penalty: _, ...others } = options
  return Object.fromEntries(givenFields(others, limiterFields))
}

/** Warns about legal names that a later draft or a metrics system may reject. */
function checkName(name: string): void {
  if (policyNameProblem(name) === undefined) return
  warnOnce(
    `the policy name '${name}' may not work everywhere: use letters, digits, '.', '_' and '-', a letter ` +
      `first, at most 64 characters`,
  )
}

/** Warns about unverified credentials. A limit by address would bound made-up ones. */
function warnIfUnverified<Native>(policies: readonly BoundPolicy<Native>[]): void {
  const evidence = policies.map(({ key }) => evidenceOf(key))
  if (!evidence.includes('unverified') || evidence.includes('address')) return
  warnOnce(
    `a limiter counts by apiKey() or bearer() without verify, and so accepts every credential: a client that makes up a new one for each request, ` +
      `for example to guess passwords, is never limited. Set verify, as in apiKey({ verify: (key) => issued.has(key) }); or, if something before the ` +
      `limiter rejects unknown credentials, verify: false`,
    'credentials that nobody verifies',
  )
}
