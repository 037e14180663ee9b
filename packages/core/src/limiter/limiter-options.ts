import { isMemoryStore, type MemoryStore, memoryStore } from '../memory-store/memory-store.ts'
import { type FailureMode, failureModes, type Policy } from '../model/policy.ts'
import { isStore, type Store } from '../model/store.ts'
import { checkObservers, type ObserverOptions } from '../observers/observers.ts'
import { SluiceError } from '../options/errors.ts'
import {
  checkedElsewhere,
  checkOptions,
  choiceOption,
  countOption,
  type Option,
  type OptionsOf,
  type Without,
} from '../options/option-table.ts'
import { givenFields, invalid, knownFields, wholeNumber } from '../options/options.ts'
import { definePenalty, type PenaltyOptions } from '../policy/penalty.ts'
import { definePolicy, type PolicyOptions, policyFields } from '../policy/policy.ts'
import { checkTogether, policyList } from '../policy/policy-list.ts'
import { registerPolicies } from '../policy/policy-registry.ts'
import type { CallingLimiter } from '../resilience/pending-ask.ts'

/** The options of a limiter, apart from its policies and observers. */
class LimiterTable {
  /**
   * Blocks keys that are denied too often, or that `limiter.block` names. It costs one more key a
   * request.
   * @default none
   */
  penalty?: Option<PenaltyOptions, Policy | undefined> = penaltyOption
  /** Store that keeps the counts. @default memoryStore() */
  store?: Option<Store, Store> = limiterStore
  /** The mode while the store is failing. @default 'fallback' */
  failureMode?: Option<FailureMode, FailureMode> = choiceOption('fallback', failureModes)
  /**
   * Longest time (ms) that a request waits for the store before the failure mode applies: 1 to
   * 60,000.
   * @default 100
   */
  deadlineMs?: Option<number, number> = countOption(100, { min: 1, max: 60_000 })
  /**
   * Memory store used while the store is unavailable. All limiters of the store share it.
   * `memoryStore({ maxKeys })` changes the bound of 100,000 keys.
   * @default memoryStore()
   */
  fallback?: Option<MemoryStore> = checkedElsewhere
  /**
   * Number of processes that share the limits, 1 to 1,000,000. Each process enforces its share
   * while the store is failing.
   * @default as many as the store has seen, initially 1
   */
  instances?: Option<number> = instanceCount
}

export interface LimiterSettings extends ObserverOptions, OptionsOf<LimiterTable> {}

/** The fields that are shorthand for a single policy; `failureMode` is the limiter's. */
type Shorthand = Exclude<keyof PolicyOptions, 'failureMode'>

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

export interface LimiterSetup extends Omit<CallingLimiter, 'onFailure'> {
  readonly policies: readonly Policy[]
  readonly penalty: Policy | undefined
  readonly fallback: MemoryStore | undefined
  /** True if some checks have their own limits. */
  readonly notesLimits: boolean
}

/** The options of a limiter, apart from its policies. Guards have them too. */
export const limiterFields: readonly string[] = [...Object.keys(new LimiterTable()), 'observers']

/** Checks the options of a limiter, and fills in the defaults. */
export function setUpLimiter(
  options: LimiterOptions,
  limitsPerRequest: readonly boolean[],
): LimiterSetup {
  knownFields(options, 'createLimiter', ['policies', ...limiterFields, ...policyFields])
  checkObservers(options.observers, 'observers')
  const { penalty, store, failureMode, deadlineMs, instances } = checkOptions(
    new LimiterTable(),
    options,
    (name) => name,
  )
  // A penalty needs no policies: then every key passes that is not blocked.
  const isAlone = penalty && givenFields(options, ['policies', ...policyFields]).length === 0
  const listed = isAlone ? [] : policyList<PolicyOptions>(options)
  const policies = listed.map(([policy, where], index) => {
    return { ...definePolicy(policy, where), limitPerRequest: limitsPerRequest[index] === true }
  })
  const all = penalty ? [...policies, penalty] : policies
  checkTogether(all)
  for (const policy of policies) checkGrants(policy, store)
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

/** Any other store could grow without bound, or be unavailable itself. */
function fallbackOf(fallback: unknown, store: Store): MemoryStore | undefined {
  if (fallback === undefined) return undefined
  if (isMemoryStore(fallback) && fallback !== store) return fallback
  const legal = 'a memoryStore() other than the store itself'
  throw invalid({ option: 'fallback' }, fallback, legal)
}

function checkGrants({ name, counting, algorithm, prefetchMs }: Policy, { grant }: Store): void {
  if (counting === algorithm || grant) return
  throw new SluiceError(
    'SLUICE_OPTION_INVALID',
    `${prefetchMs > 0 ? 'prefetch' : 'reserve'} of '${name}' must be left out on this store, which grants no units; use memoryStore(), or redisStore(client) with the encoding 'packed'`,
  )
}

function penaltyOption(value: PenaltyOptions | undefined): Policy | undefined {
  return value === undefined ? value : definePenalty(value)
}

function limiterStore(value: unknown, option: string): Store {
  if (value === undefined) return memoryStore()
  if (isStore(value)) return value
  throw invalid({ option }, value, 'a store, such as memoryStore() or redisStore(client)')
}

function instanceCount(value: unknown, option: string): number | undefined {
  return value === undefined ? value : wholeNumber(value, { option }, { min: 1, max: 1_000_000 })
}
