import { grantsKey } from '../keys/key-encoder.ts'
import type { QueuedRequest } from '../model/queued-request.ts'
import type { Plan } from '../scripts/plans.ts'
import type { ScriptCall } from '../scripts/script-runner.ts'
import type { Scripts } from '../scripts/scripts.ts'
import { leaseSetting, mayHaveGrants } from '../scripts/usual-states.ts'
import { generalCall } from './general-call.ts'

export interface CallHeader {
  /** Milliseconds since the epoch; `undefined` for the server's clock. */
  readonly now: number | undefined
  /** Returns the approximate time of Redis, in the same unit. */
  readonly guessMs: () => number
  /** Echoed by the script, so that a reply to another call is detected. */
  readonly number: number
  /** Key under which Redis recognises a retried refund; `undefined` if the client never retries. */
  readonly senderKey: string | undefined
  /** First incarnation (u32) of the call. With the server's clock, the script derives its own. */
  readonly incarnation: number
  /** Grants of the only key, read beforehand because its slot is migrating. */
  readonly apart?: string | undefined
  /** Deadline (ms, server's clock): after it, the script changes nothing. */
  readonly untilMs?: string | undefined
}

export interface EncodedCall extends ScriptCall {
  readonly keyCount: number
  /** Id that the script echoes; '' for a single request of one policy, which has no echo. */
  readonly callId: string
}

/** Encodes the calls of one store. */
export class CallEncoder {
  readonly #scripts: Scripts

  constructor(scripts: Scripts) {
    this.#scripts = scripts
  }

  /** @param plan shared by all the asks, if any */
  encode(asks: readonly QueuedRequest[], plan: Plan | undefined, header: CallHeader): EncodedCall {
    const { now, guessMs, number, senderKey, incarnation, apart, untilMs } = header
    const callId = now === undefined ? `c${number}` : `c${number};${incarnation}`
    const clock = now === undefined ? '' : String(now)
    const hasGrants = plan ? plan.hasGrants : asks.some(mayHaveGrants)
    const script = plan?.script ?? (hasGrants ? this.#scripts.granting : this.#scripts.general)
    const args = [script.sha1, '']
    for (let i = 0; i < asks.length; i += 1) {
      const keys = asks[i]?.keys ?? []
      for (let k = 0; k < keys.length; k += 1) args.push(keys[k] ?? '')
    }
    const keyCount = args.length - 2
    if (hasGrants && apart === undefined)
      for (let i = 0; i < keyCount; i += 1) args.push(grantsKey(args[2 + i] ?? ''))
    const isNumbered = !plan && senderKey !== undefined && asks.some(({ op }) => op === 'refund')
    if (isNumbered) args.push(senderKey)
    args[1] = String(args.length - 2)
    const [only] = asks
    const isLone = plan?.width === 1 && asks.length === 1
    if (!plan) {
      const own = { apart, number: isNumbered ? number : undefined }
      args.push(callId, clock, generalCall(asks, guessMs(), own))
    } else if (isLone && only) pushLone(args, plan, { ask: only, stamp: [callId, clock] })
    else {
      // Arguments of `lua/usual-one.lua` for several keys, or of `lua/usual-list.lua`.
      const repeats = new Set(args.slice(2, 2 + keyCount)).size < keyCount
      args.push(...plan.fields, callId, clock, repeats ? '1' : '0')
      if (!asks.every(costsOne)) for (const ask of asks) pushCosts(args, ask)
    }
    if (untilMs !== undefined) args.push(untilMs)
    return { script, args, keyCount, callId: isLone ? '' : callId }
  }

  readHeldUnits(key: string): EncodedCall {
    const script = this.#scripts.heldUnits
    return { script, args: [script.sha1, '1', grantsKey(key)], keyCount: 1, callId: '' }
  }
}

type CallStamp = readonly [callId: string, clock: string]

/** With the server's clock, a request of cost 1 needs only the policy. */
function pushLone(
  args: string[],
  { fields, loneFields }: Plan,
  { ask, stamp }: { ask: QueuedRequest; stamp: CallStamp },
): void {
  const lease = ask.op === 'consume' ? undefined : leaseSetting(ask)
  const hasCost = lease === undefined && !costsOne(ask)
  const hasStamp = hasCost || stamp[1] !== ''
  if (hasStamp || lease !== undefined) {
    const [limit = '', windowMs = '', setting = ''] = fields
    args.push(limit, windowMs, lease ?? setting)
    if (hasStamp) args.push(...stamp)
    if (hasCost) pushCosts(args, ask)
  } else for (let i = 0; i < loneFields.length; i += 1) args.push(loneFields[i] ?? '')
}

/** Appends the cost of each key, negative for a charge; or the lease to release or renew. */
function pushCosts(args: string[], ask: QueuedRequest): void {
  const lease = leaseSetting(ask)
  for (const { cost } of ask.checks) {
    args.push(lease ?? String(ask.op === 'charge' ? -cost : cost))
  }
}

function costsOne({ op, checks }: QueuedRequest): boolean {
  if (op !== 'consume') return false
  for (let i = 0; i < checks.length; i += 1) if (checks[i]?.cost !== 1) return false
  return true
}
