import { type Check, Receipt, SluiceError } from '@sluice/core'
import { algorithmOf, leavesTrace, outcomeOf, type TwinReading, waitMs } from '@sluice/core/backend'
import type { QueuedOutcome, QueuedRequest } from '../model/queued-request.ts'

/** The result of an ask; an error if the script could not decide it. */
export type AskResult = readonly QueuedOutcome[] | SluiceError

export function passOn(results: readonly AskResult[], asks: readonly QueuedRequest[]): void {
  for (let i = 0; i < asks.length; i += 1) {
    const result = results[i] ?? []
    if (result instanceof Error) asks[i]?.fail(result)
    else asks[i]?.settle(result)
  }
}

/** Factor that packs the two numbers of a report into one integer. */
const detailSpan = 2 ** 27

/** The store works and decides other checks, so this must not open the breaker. */
function failedCheck(reason: string): SluiceError {
  return new SluiceError('SLUICE_STORE_CHECK', `Redis could not decide this check: ${reason}`)
}

/**
 * Reads the replies of calls one after another, in the formats of `lua/decide.lua` and
 * `lua/usual-call.lua`. One reader serves all calls of a store.
 */
export class ReplyReader implements TwinReading {
  /** Number of stored values that could not be read for the last reply, and counted as empty. */
  unreadable = 0
  /** The report that was read last. */
  amount = 0
  detail = 0
  incarnation = 0
  explicitMs: number | undefined = undefined
  aheadMs = 0
  #reply: readonly unknown[] = []
  #callId = ''
  #now = 0
  #at = 0

  /**
   * Returns the results in the order of the asks.
   * @param callId the id that the script echoes; '' if it echoes none, as for a single request
   * @throws SluiceError if it is not the answer to this call
   */
  read(reply: unknown, callId: string, asks: readonly QueuedRequest[]): readonly AskResult[] {
    if (!Array.isArray(reply)) throw unanswered(callId)
    // The reply to a single request is its report, the time and the number of unreadable values.
    const isLone = callId === ''
    if (!isLone && reply[0] !== callId) throw unanswered(callId)
    this.#reply = reply
    this.#callId = callId
    this.#now = this.#integer(reply[1])
    this.#at = isLone ? 0 : 2
    const results = asks.map(this.#resultOf, this)
    const end = isLone ? 2 : this.#at
    if (reply.length !== end && reply.length !== end + 1) throw unanswered(callId)
    this.unreadable = this.#integer(reply[end] ?? 0)
    return results
  }

  #resultOf({ op, checks }: QueuedRequest): AskResult {
    const first = this.#at
    this.#at += checks.length
    for (let at = first; at < this.#at; at += 1) {
      const report = this.#reply[at]
      if (Array.isArray(report) && Number(report[0]) === -1) return failedCheck(String(report[1]))
    }
    return checks.map((check, index) => this.#outcomeOf(op, check, this.#reply[first + index]))
  }

  #outcomeOf(op: QueuedRequest['op'], check: Check, value: unknown): QueuedOutcome {
    const verdict = Array.isArray(value) ? this.#readList(value) : this.#readPacked(value)
    const now = this.#now
    const { counts, fromTwin } = algorithmOf(check.policy)
    const found = fromTwin(check, this, now)
    const { at } = found
    const { incarnation } = this
    const outcome = outcomeOf(found.state, check, now)
    if (op === 'grant' && Array.isArray(value)) {
      const granted = this.#integer(value[5])
      const isTaken = this.#integer(value[6]) === 1
      if (isTaken) outcome.receipt = new Receipt(check, at, incarnation)
      return { ...outcome, allowed: granted > 0, granted }
    }
    const takes = op === 'consume' || op === 'charge'
    const isChange = !takes && op !== 'peek'
    // True if the request is allowed, or had anything to change.
    const isFound = verdict === 1
    if (isFound || isChange) outcome.delayMs = found.delayMs ?? 0
    else {
      const wait = waitMs(found.state, check, now)
      const isKnown = wait === 0 || wait === Number.POSITIVE_INFINITY
      outcome.denyFor(isKnown ? wait : (found.waitMs ?? wait))
    }
    if (isFound && takes && counts !== 'strikes' && leavesTrace(check))
      outcome.receipt = new Receipt(check, at, incarnation)
    if (verdict === 2) outcome.allowed = true
    else if (isChange) outcome.allowed = isFound
    return outcome
  }

  /** Returns 1 if the request is allowed, 2 if only other policies deny it. */
  #readList(list: readonly unknown[]): number {
    const [allowed, amount, detail, incarnation, explicitMs, aheadMs] = list
    this.amount = this.#integer(amount)
    this.detail = this.#integer(detail)
    this.incarnation = this.#integer(incarnation)
    this.explicitMs = explicitMs === undefined ? undefined : this.#integer(explicitMs)
    this.aheadMs = this.#integer(aheadMs ?? 0)
    return this.#integer(allowed)
  }

  #readPacked(value: unknown): number {
    const signed = this.#integer(value)
    const packed = signed < 0 ? -1 - signed : signed
    this.detail = packed % detailSpan
    this.amount = (packed - this.detail) / detailSpan
    this.incarnation = 0
    this.explicitMs = undefined
    this.aheadMs = 0
    return signed >= 0 ? 1 : 0
  }

  /** Clients can be configured to return integers as strings. */
  #integer(value: unknown): number {
    const number = typeof value === 'number' ? value : Number(value ?? Number.NaN)
    if (!Number.isSafeInteger(number)) throw unanswered(this.#callId)
    return number
  }
}

function unanswered(callId: string): SluiceError {
  const call = callId === '' ? 'a call of one request' : `call ${callId}`
  return new SluiceError('SLUICE_STORE_REPLY', `${call} got the reply to another call`)
}

/** Decodes a list reply; any other reply counts as an empty list. */
export function listOf(reply: unknown): readonly unknown[] {
  return Array.isArray(reply) ? reply : []
}

/** Decodes a string in a reply: clients return strings, bytes, or numbers for numeric strings. */
export function textOf(value: unknown): string {
  if (typeof value === 'string' || typeof value === 'number') return String(value)
  return value instanceof Uint8Array ? new TextDecoder().decode(value) : ''
}
