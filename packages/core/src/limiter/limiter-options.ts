import { algorithmOf } from '../algorithms/table.ts'
import { isMemoryStore, type MemoryStore, memoryStore } from '../memory-store/memory-store.ts'
import { type FailureMode, failureModes, type Policy } from '../model/policy.ts'
import { isStore, type Store } from '../model/store.ts'
import { checkObservers, type ObserverOptions } from '../observers/observers.ts'
import { SluiceError } from '../options/errors.ts'
import { invalid, knownFields, oneOf, wholeNumber } from '../options/options.ts'
import { definePenalty, type PenaltyOptions } from '../policy/penalty.ts'
import {
  definePolicy,
  type PolicyFields,
  type PolicyOptions,
  policyFields,
} from '../policy/policy.ts'
import { registerPolicies } from '../policy/policy-registry.ts'
import type { CallingLimiter } from '../resilience/pending-ask.ts'

export interface LimiterSettings extends ObserverOptions {
  /**
   * Blocks keys that are denied too often, or that `limiter.block` names. It costs one more key a
   * request.
   * @default none
   */
  penalty?: PenaltyOptions | undefined
  /** Store that keeps the counts. @default memoryStore() */
  store?: Store | undefined
  /** The mode while the store is failing. @default 'fallback' */
  failureMode?: FailureMode | undefined
  /**
   * Longest time (ms) that a request waits for the store before the failure mode applies: 1 to
   * 60,000.
   * @default 100
   */
  deadlineMs?: number | undefined
  /**
   * Memory store used while the store is unavailable. All limiters of the store share it.
   * `memoryStore({ maxKeys })` changes the bound of 100,000 keys.
   * @default memoryStore()
   */
  fallback?: MemoryStore | undefined
  /**
   * Number of processes that share the limits, 1 to 1,000,000. Each process enforces its share
   * while the store is failing.
   * @default as many as the store has seen, initially 1
   */
  instances?: number | undefined
}

/** Options that may be left out, or be `undefined`. */
export type Optional<T> = { [Field in keyof T]?: T[Field] | undefined }

/** Fields that are left out. */
export type Without<Field extends string> = { [field in Field]?: undefined }

/** The fields that are shorthand for a single policy; `failureMode` is the limiter's. */
type Shorthand = Exclude<keyof PolicyFields, 'failureMode'>

/**
 * `policies`, or the fields of one policy at the top level (`limit`, `window`, …) as shorthand. A
 * `penalty` alone needs neither.
 */
export type LimiterOptions = LimiterSettings &
  (
    | (PolicyOptions & Without<'policies'>)
    | ({
        /** Quotas for every request. They are enforced together, all or nothing. */
        policies: readonly PolicyOptions[]
      } & Without<Shorthand>)
    | ({ penalty: PenaltyOptions } & Without<Shorthand | 'policies'>)
  )

/** All policies of a request are decided in one step, which has to stay short. */
const mostPolicies = 64

export interface LimiterSetup extends Omit<CallingLimiter, 'onFailure'> {
  readonly policies: readonly Policy[]
  readonly penalty: Policy | undefined
  readonly fallback: MemoryStore | undefined
  /** Tells whether some checks bring their own limits. */
  readonly notesLimits: boolean
}

/** The options of a limiter beside its policies; layers above take them too. */
export const limiterFields: readonly (keyof LimiterSettings)[] = [
  'penalty',
  'store',
  'failureMode',
  'deadlineMs',
  'instances',
  'fallback',
  'observers',
]

/** Checks the options of a limiter, and fills in the defaults. */
export function setUpLimiter(
  options: LimiterOptions,
  limitsPerRequest: readonly boolean[],
): LimiterSetup {
  knownFields(options, 'createLimiter', ['policies', ...limiterFields, ...policyFields])
  checkObservers(options.observers, 'observers')
  // A penalty alone needs no policies: such a limiter lets every key pass that is not blocked.
  const isAlone =
    options.penalty && givenFields(options, ['policies', ...policyFields]).length === 0
  const listed = isAlone ? [] : policyList<PolicyOptions>(options)
  const policies = listed.map(([policy, where], index) => {
    return { ...definePolicy(policy, where), limitPerRequest: limitsPerRequest[index] === true }
  })
  const penalties = options.penalty === undefined ? [] : [definePenalty(options.penalty)]
  const all = [...policies, ...penalties]
  checkTogether(all)
  const store = storeOf(options.store)
  for (const policy of policies) checkGrants(policy, store)
  const { failureMode: mode = 'fallback', deadlineMs = 100, instances } = options
  const failureMode = oneOf(mode, { option: 'failureMode' }, failureModes)
  wholeNumber(deadlineMs, { option: 'deadlineMs' }, { min: 1, max: 60_000 })
  if (instances !== undefined) {
    wholeNumber(instances, { option: 'instances' }, { min: 1, max: 1_000_000 })
  }
  store.accept?.(all, deadlineMs)
  const registered = registerPolicies(store, all)
  return {
    policies: registered.slice(0, policies.length),
    penalty: registered[policies.length],
    store,
    failureMode,
    deadlineMs,
    instances,
    fallback: fallbackOf(options.fallback, store),
    notesLimits: limitsPerRequest.includes(true),
  }
}

/** Any other store could grow without end, or be away itself. */
function fallbackOf(fallback: unknown, store: Store): MemoryStore | undefined {
  if (fallback === undefined) return undefined
  if (isMemoryStore(fallback) && fallback !== store) return fallback
  const legal = 'a memoryStore() of its own, which is bounded, and is not the store itself'
  throw invalid({ option: 'fallback' }, fallback, legal)
}

/**
 * Checks policies that are decided together. A request that waits in a queue would hold a lease all
 * the while, and so keep others from running.
 * @throws SluiceError when two have one name, or work against each other
 */
export function checkTogether(policies: readonly Policy[]): void {
  for (const [index, { named, id, name }] of policies.entries()) {
    if (!named || policies.findIndex((other) => other.id === id) === index) continue
    throw new SluiceError(
      'SLUICE_POLICY_DUPLICATE',
      `policies: the name '${name}' stands twice in one limiter; give each policy a name of its own`,
    )
  }
  const counting = policies.find(
    (policy) => policy.countDenied && algorithmOf(policy).counts === 'units',
  )
  if (counting && policies.some(({ thenReset }) => thenReset)) {
    throw new SluiceError(
      'SLUICE_POLICY_COMBINATION',
      `policies: '${counting.name}' counts the requests that a block denies, so its key cannot begin anew after it; leave countDenied or penalty.thenReset out`,
    )
  }
  const queue = policies.find((policy) => algorithmOf(policy).delayMs)
  const leases = policies.find((policy) => algorithmOf(policy).counts === 'leases')
  if (!queue || !leases) return
  throw new SluiceError(
    'SLUICE_POLICY_COMBINATION',
    `policies: '${queue.name}' (${queue.algorithm}) holds requests, which would occupy '${leases.name}' (${leases.algorithm}) while they ` +
      `wait; put the queue into a limiter of its own, before the other one`,
  )
}

/** The fields of options, of those that are asked for. An option of `undefined` is not given. */
export function givenFields(
  options: object,
  fields: readonly string[],
): readonly (readonly [field: string, value: unknown])[] {
  return Object.entries(options).filter(
    ([field, value]) => value !== undefined && fields.includes(field),
  )
}

/**
 * The policies of options: the listed ones, or the one that the top-level fields are shorthand for.
 * Each comes with its path for messages ('' at the top level).
 * @typeParam P the options of a policy, which a layer above may have widened
 */
export function policyList<P extends object>(
  options: { readonly policies?: readonly P[] | undefined },
  fields: readonly string[] = policyFields,
): readonly (readonly [policy: P, where: string])[] {
  const shorthand = givenFields(options, fields)
  const { policies } = options
  if (policies === undefined) {
    if (shorthand.length === 0) {
      throw new SluiceError(
        'SLUICE_OPTION_INVALID',
        `no policy: give limit and window, as in { limit: 100, window: '1m' }, or a list of policies`,
      )
    }
    return [[Object.fromEntries(shorthand) as P, '']]
  }
  if (!Array.isArray(policies) || policies.length === 0 || policies.length > mostPolicies) {
    throw invalid({ option: 'policies' }, policies, `an array of 1 to ${mostPolicies} policies`)
  }
  if (shorthand[0]) {
    throw new SluiceError(
      'SLUICE_OPTION_INVALID',
      `${shorthand[0][0]} stands beside policies, but is shorthand for a single one: move it into a policy`,
    )
  }
  return policies.map((policy: P, index) => [policy, `policies[${index}]`] as const)
}

function checkGrants({ name, counting, algorithm, prefetchMs }: Policy, { grant }: Store): void {
  if (counting === algorithm || grant) return
  throw new SluiceError(
    'SLUICE_OPTION_INVALID',
    `${prefetchMs > 0 ? 'prefetch' : 'reserve'} of '${name}' must be left out on this store, which grants no units; use memoryStore(), or redisStore(client) with the encoding 'packed'`,
  )
}

function storeOf(store: Store | undefined): Store {
  if (store === undefined) return memoryStore()
  if (isStore(store)) return store
  throw invalid({ option: 'store' }, store, 'a store, such as memoryStore() or redisStore(client)')
}
