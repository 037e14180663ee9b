import { givenFields, invalid } from '../options/options.ts'
import type { Algorithm, KeyState, OptionForm, OptionPath, OwnOptions } from './algorithm.ts'
import { type ConcurrencyOptions, type ConcurrencySettings, concurrency } from './concurrency.ts'
import { type FixedWindowOptions, type FixedWindowSettings, fixedWindow } from './fixed-window.ts'
import { grantedLog } from './granted-log.ts'
import { type LeakyBucketOptions, type LeakyBucketSettings, leakyBucket } from './leaky-bucket.ts'
import { type PenaltyOwnSettings, penalty } from './penalty.ts'
import { slidingCounter } from './sliding-counter.ts'
import { type SlidingLogOptions, type SlidingLogSettings, slidingLog } from './sliding-log.ts'
import { type TokenBucketOptions, type TokenBucketSettings, tokenBucket } from './token-bucket.ts'

/** The names of all algorithms. */
export const algorithmNames = [
  'sliding-log',
  'sliding-counter',
  'fixed-window',
  'token-bucket',
  'leaky-bucket',
  'concurrency',
] as const

/** The algorithms that policies can name. */
export type AlgorithmName = (typeof algorithmNames)[number]

/** All algorithm names, plus `penalty`, which only the option `penalty` uses. */
export type CountingName = AlgorithmName | 'penalty'

/** All internal algorithms. `granted-log` is a `sliding-log` plus the units that processes hold. */
export type Counting = CountingName | 'granted-log'

/** The options specific to one algorithm. */
export interface AlgorithmOptions
  extends SlidingLogOptions,
    FixedWindowOptions,
    TokenBucketOptions,
    LeakyBucketOptions,
    ConcurrencyOptions {}

/** Settings specific to one algorithm, with default values for the others. */
export interface AlgorithmSettings
  extends SlidingLogSettings,
    FixedWindowSettings,
    TokenBucketSettings,
    LeakyBucketSettings,
    ConcurrencySettings,
    PenaltyOwnSettings {}

/** Any algorithm, whatever its state and options. */
type AnyAlgorithm = Omit<Algorithm<KeyState, AlgorithmSettings>, 'options'> & {
  readonly options: Omit<OwnOptions<AlgorithmOptions, Partial<AlgorithmSettings>>, 'fields'> & {
    readonly fields: { readonly [field in keyof AlgorithmOptions]?: OptionForm }
  }
}

type Table = { readonly [name in Counting]: AnyAlgorithm }

const table: Table = {
  'sliding-log': slidingLog,
  'sliding-counter': slidingCounter,
  'fixed-window': fixedWindow,
  'token-bucket': tokenBucket,
  'leaky-bucket': leakyBucket,
  concurrency,
  penalty,
  'granted-log': grantedLog,
}

const traits = Object.values(table).flatMap((one) => Object.keys(one))
const noTraits = Object.fromEntries(traits.map((trait) => [trait, undefined]))

/**
 * The algorithms by name. Pass a state only to the algorithm that created it. All these objects
 * have one shape, so V8 finds their functions faster: that saves 10 to 15% of a decision.
 */
export const algorithms: Table = Object.assign(
  {},
  ...Object.entries(table).map(([name, one]) => ({ [name]: { ...noTraits, ...one } })),
)

let latestName: Counting = 'sliding-log'
let latest = algorithms[latestName]

/** Returns the algorithm of a policy. Check its traits, never its name. */
export function algorithmOf({ counting }: { readonly counting: Counting }): AnyAlgorithm {
  // A decision asks several times for one policy, and a look-up costs as much as a function call.
  if (counting !== latestName) {
    latestName = counting
    latest = algorithms[counting]
  }
  return latest
}

export const algorithmFields: readonly string[] = algorithmNames.flatMap((name) =>
  Object.keys(algorithms[name].options.fields),
)

/** @throws SluiceError for an option that is out of range, or unknown to the algorithm */
export function algorithmSettings(
  options: AlgorithmOptions,
  { algorithm, windowMs }: { algorithm: CountingName; windowMs: number },
  at: OptionPath,
): AlgorithmSettings {
  for (const [field, value] of givenFields(options, algorithmFields)) {
    if (knows(algorithm, field)) continue
    const owners = algorithmNames.filter((name) => knows(name, field)).map((name) => `'${name}'`)
    const legal = `left out with algorithm '${algorithm}': only ${owners.join(' or ')} has it`
    throw invalid({ option: at(field) }, value, legal)
  }
  const own = Object.values(algorithms).map((one) => one.options.read(options, windowMs, at))
  return Object.assign({}, ...own)
}

function knows(name: CountingName, field: string): boolean {
  return Object.hasOwn(algorithms[name].options.fields, field)
}
