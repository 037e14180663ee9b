import type { PenaltySettings } from '../algorithms/penalty.ts'
import type { Policy } from '../model/policy.ts'
import { type Duration, windowMsOf } from '../options/duration.ts'
import { flag, invalid, isWholeNumber, knownFields, orDefault } from '../options/options.ts'
import { definePolicy } from './policy.ts'

interface NamedPenalty {
  /**
   * Name that blocked clients see. Penalties with the same name and `within` on one store are the
   * same penalty. A key that is blocked in one place is blocked in all of them.
   * @default none: private to its limiter and shown as `penalty`
   */
  name?: string | undefined
  /** Enforces the penalty, but never names it in a response. @default false */
  hidden?: boolean | undefined
}

/** Blocks a key that is denied too often, each time for longer. */
export interface AutomaticPenalty extends NamedPenalty {
  /**
   * Number of denials that lead to a block: a whole number from 1 to 1,000,000. Denials during
   * a block do not count.
   */
  after: number
  /**
   * Window in which denials are counted. The first denial starts it, and the first denial after its
   * end starts the next one.
   */
  within: Duration
  /** Duration of the first block. */
  for: Duration
  /**
   * Factor by which each block is longer than the last: a number ≥ 1. Fractions of a ms are
   * dropped. A key that is not blocked again within the duration of its last block, or within
   * `within` if that is longer, starts over.
   * @default 2
   */
  factor?: number | undefined
  /** Duration of the longest block, at least `for`. @default '1d', or `for` if that is longer */
  max?: Duration | undefined
  /**
   * Resets the policies that count the blocked key, so that the key has its full quota afterwards.
   * Without it, a client whose block is shorter than a window stays out until the window ends. It
   * requires a `for` of at least a second, and no policy with `countDenied`.
   * @default false
   */
  thenReset?: boolean | undefined
}

/** Blocks only through `limiter.block`. */
export interface ManualPenalty extends NamedPenalty {
  after: 'never'
}

/** Options of a penalty: automatic after denials, or only through `block`. */
export type PenaltyOptions = AutomaticPenalty | ManualPenalty

const names = ['name', 'hidden']
const automatic = ['after', 'within', 'for', 'factor', 'max', 'thenReset']
const dayMs = 86_400_000

/**
 * Checks the options of a penalty.
 * @throws SluiceError that names the option, its value and the legal range
 */
export function definePenalty(options: PenaltyOptions): Policy {
  knownFields(options, 'penalty', [...automatic, ...names])
  const { after, name, hidden } = options
  const limit = after === 'never' ? 1 : strikes(after)
  const windowMs = after === 'never' ? 0 : windowMsOf(options.within, 'penalty.within')
  const settings = after === 'never' ? nothing(options) : settingsOf(options)
  return {
    ...definePolicy({ name, hidden, limit, window: '1s' }, 'penalty'),
    algorithm: 'penalty',
    counting: 'penalty',
    ...(name === undefined && { id: `~penalty-${after}-${windowMs}`, name: 'penalty' }),
    windowMs,
    penalty: settings,
    countDenied: settings !== undefined,
    thenReset: after !== 'never' && thenReset(options.thenReset, settings),
  }
}

function nothing(options: ManualPenalty): undefined {
  for (const [field, value] of Object.entries(options)) {
    if (field === 'after' || !automatic.includes(field) || value === undefined) continue
    const legal = "left out with after: 'never', where only limiter.block blocks"
    throw invalid({ option: `penalty.${field}` }, value, legal)
  }
}

function settingsOf(options: AutomaticPenalty): PenaltySettings {
  const forMs = windowMsOf(options.for, 'penalty.for')
  const factor = orDefault(options.factor, 2)
  if (typeof factor !== 'number' || !Number.isFinite(factor) || factor < 1) {
    throw invalid({ option: 'penalty.factor' }, factor, 'a number ≥ 1; 1 for equal blocks')
  }
  const maxMs =
    options.max === undefined ? Math.max(dayMs, forMs) : windowMsOf(options.max, 'penalty.max')
  if (maxMs >= forMs) return { forMs, factor, maxMs }
  throw invalid({ option: 'penalty.max' }, options.max, `at least penalty.for (${forMs} ms)`)
}

/** Other processes that deny the key still notice within a second. */
function thenReset(given: unknown, settings: PenaltySettings | undefined): boolean {
  const isReset = flag(given, { option: 'penalty.thenReset' }, false)
  if (!isReset || !settings || settings.forMs >= 1_000) return isReset
  throw invalid({ option: 'penalty.for' }, settings.forMs, `at least '1s' with thenReset`)
}

function strikes(after: unknown): number {
  const most = 1_000_000
  if (isWholeNumber(after, { min: 1, max: most })) return after
  throw invalid({ option: 'penalty.after' }, after, `a whole number from 1 to ${most}, or 'never'`)
}
