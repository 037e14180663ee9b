import { type Ask, isSluiceError, type Outcome, SluiceError, type StoreOp } from '@sluice/core'
import { type DecidedAsk, type KeyReport, readOutcome } from './outcomes.ts'

/** The result of an ask; an error if the script could not decide it. */
export type AskResult = readonly Outcome[] | SluiceError

/** The result of a call. */
export interface CallReply {
  /** In the order of the asks. */
  readonly results: readonly AskResult[]
  /** Stored values that could not be read, and counted as empty. */
  readonly unreadable: number
}

/** Gives each ask its result. */
export function passOn(results: readonly AskResult[], asks: readonly Ask[]): void {
  for (let i = 0; i < asks.length; i += 1) {
    const result = results[i] ?? []
    if (isSluiceError(result)) asks[i]?.fail(result)
    else asks[i]?.settle(result)
  }
}

/** Factor that packs the two numbers of a report into one integer. */
const ySpan = 2 ** 27

/**
 * Decodes the reply of a call, in the forms that `lua/decide.lua` and `lua/usual-one.lua` give.
 * @param callId that the script echoes; '' where it echoes none, as for a request alone
 * @throws SluiceError when it is not the answer to this call
 */
export function decodeReply(reply: unknown, callId: string, asks: readonly Ask[]): CallReply {
  if (!Array.isArray(reply)) throw unanswered(callId)
  // A request alone is answered by its report, the time and what could not be read.
  const isLone = callId === ''
  if (isLone ? reply.length > 3 : reply[0] !== callId) throw unanswered(callId)
  const reader = new ReportReader(reply, isLone ? 0 : 2, callId)
  const now = integer(reply[1], callId)
  const results: AskResult[] = []
  for (let i = 0; i < asks.length; i += 1) {
    const ask = asks[i]
    if (ask) results.push(resultOf(ask, reader, now))
  }
  return { results, unreadable: isLone ? integer(reply[2] ?? 0, callId) : reader.rest() }
}

function resultOf({ op, checks }: Ask, reader: ReportReader, now: number): AskResult {
  const takes = op === 'consume' || op === 'charge'
  const isChange = !takes && op !== 'peek'
  let failure: SluiceError | undefined
  const outcomes: Outcome[] = []
  for (let i = 0; i < checks.length; i += 1) {
    const check = checks[i]
    if (!check) continue
    const found = reader.next()
    if (typeof found === 'string') {
      failure ??= failedCheck(found)
      continue
    }
    const isAllowed = found || isChange
    const decided: DecidedAsk = { now, isAllowed, isTaken: takes && isAllowed }
    const outcome = readOutcome[check.policy.algorithm](check, reader.report, decided)
    outcomes.push(isChange && !found ? notFound(op, outcome) : outcome)
  }
  return failure ?? outcomes
}

/** The store is there, and decides others: this is no reason to leave it. */
function failedCheck(reason: string): SluiceError {
  return new SluiceError(
    'SLUICE_STORE_CHECK',
    `Redis answered, and could not decide this check: ${reason}`,
  )
}

/**
 * Returns the outcome of an operation that found nothing to change. A lease that could not be
 * renewed has to be asked for again.
 */
function notFound(op: StoreOp, outcome: Outcome): Outcome {
  const retryAfterMs = op === 'renew' ? outcome.policy.retryMs : 0
  return { ...outcome, allowed: false, retryAfterMs }
}

/** Goes through the reports of a reply. */
class ReportReader {
  /** The report that was read last: one object for all, since there are many. */
  readonly report: { -readonly [field in keyof KeyReport]: KeyReport[field] } = {
    x: 0,
    y: 0,
    incarnation: 0,
    more: undefined,
  }
  readonly #reply: readonly unknown[]
  readonly #callId: string
  #at: number

  constructor(reply: readonly unknown[], from: number, callId: string) {
    this.#reply = reply
    this.#at = from
    this.#callId = callId
  }

  /** Reads the next report; returns whether its request is allowed, or had anything to change, or why it could not be decided. */
  next(): boolean | string {
    const value = this.#reply[this.#at]
    this.#at += 1
    const { report } = this
    if (Array.isArray(value)) {
      const [allowed, x, y, incarnation, more] = value
      if (Number(allowed) === -1) return String(x)
      report.x = integer(x, this.#callId)
      report.y = integer(y, this.#callId)
      report.incarnation = integer(incarnation, this.#callId)
      report.more = more === undefined ? undefined : integer(more, this.#callId)
      return integer(allowed, this.#callId) === 1
    }
    const signed = integer(value, this.#callId)
    const packed = signed < 0 ? -1 - signed : signed
    report.y = packed % ySpan
    report.x = (packed - report.y) / ySpan
    report.incarnation = 0
    report.more = undefined
    return signed >= 0
  }

  /** After the last report: how many stored values could not be read. */
  rest(): number {
    if (this.#at === this.#reply.length) return 0
    if (this.#at === this.#reply.length - 1) return integer(this.#reply[this.#at], this.#callId)
    throw unanswered(this.#callId)
  }
}

/** Clients can be set to give integers as texts. */
function integer(value: unknown, callId: string): number {
  const number = typeof value === 'number' ? value : Number(value ?? Number.NaN)
  if (!Number.isSafeInteger(number)) throw unanswered(callId)
  return number
}

function unanswered(callId: string): SluiceError {
  const call = callId === '' ? 'a call of one request' : `call ${callId}`
  return new SluiceError('SLUICE_STORE_REPLY', `${call} got a reply that does not answer it`)
}
