import type { Ask } from '@sluice/core'
import type { Plan } from '../scripts/plans.ts'
import type { Script, Scripts } from '../scripts/scripts.ts'
import type { StoreSettings } from '../scripts/usual-states.ts'
import { GeneralCall } from './general-call.ts'

/** What a call says of itself, beside its asks. */
export interface CallHeader {
  /** Milliseconds since the epoch; `undefined` for the server's clock. */
  readonly now: number | undefined
  /**
   * Echoed by the script, so that a reply can be told from one to another call. A request alone has
   * no echo.
   */
  readonly number: number
  /** u32 from which the incarnations of the call are counted. */
  readonly incarnation: number
}

/** A call as it travels: a script, and the arguments that it is run with. */
export interface EncodedCall {
  readonly script: Script
  /** Behind the script: the number of keys, the keys, and what the script reads. */
  readonly args: string[]
  readonly keyCount: number
  /** What the script echoes. */
  readonly callId: string
}

/** Writes the calls of one store. */
export class CallEncoder {
  readonly #scripts: Scripts
  readonly #settings: StoreSettings

  constructor(scripts: Scripts, settings: StoreSettings) {
    this.#scripts = scripts
    this.#settings = settings
  }

  /** @param plan of all the asks, where they have one in common: then a script for just that decides them */
  encode(asks: readonly Ask[], plan: Plan | undefined, header: CallHeader): EncodedCall {
    const { ttlMargin, isServerClock } = this.#settings
    const callId = `c${header.number};${ttlMargin};${header.incarnation};${isServerClock ? 1 : 0}`
    const script = plan?.script ?? this.#scripts.general
    const args = [script.sha1, '']
    for (let i = 0; i < asks.length; i += 1) {
      const keys = asks[i]?.keys ?? []
      for (let k = 0; k < keys.length; k += 1) args.push(keys[k] ?? '')
    }
    const keyCount = args.length - 2
    args[1] = String(keyCount)
    args.push(header.now === undefined ? '' : String(header.now), callId)
    if (plan) pushPlan(args, plan, asks)
    else args.push(new GeneralCall(asks, this.#settings).json)
    return { script, args, keyCount, callId }
  }
}

/** What `lua/usual-one.lua` and `lua/usual-list.lua` read. For one request of one policy and of cost 1 the policy is enough. */
function pushPlan(args: string[], { fields, width }: Plan, asks: readonly Ask[]): void {
  const hasCosts = !asks.every(costsOne)
  if (width > 1) args.push(String(width), repeatsKeys(asks) ? '1' : '0')
  for (let i = 0; i < fields.length; i += 1) args.push(fields[i] ?? '')
  if (width === 1 && (asks.length > 1 || hasCosts)) args.push(repeatsKeys(asks) ? '1' : '0')
  if (!hasCosts) return
  for (const { checks } of asks) for (const { cost } of checks) args.push(String(cost))
}

function costsOne({ checks }: Ask): boolean {
  for (let i = 0; i < checks.length; i += 1) if (checks[i]?.cost !== 1) return false
  return true
}

/** The call in which a place of the table was last taken, by the hash of a key: so mostly no key has to be compared. */
const takenIn = new Uint32Array(2 ** 14)
let comparisons = 0

/** Whether a key occurs more than once in the asks. */
function repeatsKeys(asks: readonly Ask[]): boolean {
  if (asks.length === 1 && asks[0]?.keys.length === 1) return false
  comparisons = (comparisons + 1) >>> 0
  for (let i = 0; i < asks.length; i += 1) {
    const keys = asks[i]?.keys ?? []
    for (let k = 0; k < keys.length; k += 1) {
      const place = hashOfEnd(keys[k] ?? '')
      if (takenIn[place] === comparisons) return hasRepeats(asks.flatMap((ask) => ask.keys))
      takenIn[place] = comparisons
    }
  }
  return false
}

/** The ends of keys differ: they are ends of digests. */
function hashOfEnd(key: string): number {
  const end = key.length - 1
  const hash =
    key.charCodeAt(end - 1) ^ (key.charCodeAt(end - 2) << 6) ^ (key.charCodeAt(end - 3) << 12)
  return (hash ^ (hash >>> 5)) & (takenIn.length - 1)
}

function hasRepeats(keys: readonly string[]): boolean {
  return new Set(keys).size < keys.length
}
