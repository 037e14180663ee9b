import { isSluiceError, type Outcome, SluiceError, type StoreOp } from '@sluice/core'
import type { Row } from '../calls/row.ts'
import { type Report, readOutcome } from './outcomes.ts'

/** What a row came to; an error where the script could not decide it. */
export type Answer = readonly Outcome[] | SluiceError

export function isFailure(answer: Answer): answer is SluiceError {
  return isSluiceError(answer)
}

/** What a call came to. */
export interface CallReply {
  /** In the order of the rows. */
  readonly answers: readonly Answer[]
  /** Stored values that could not be read, and counted as empty. */
  readonly unreadable: number
}

/** Where the two numbers of a report meet in one integer. */
const ySpan = 2 ** 27

/**
 * Decodes the reply of a call, in the forms that `lua/decide.lua` and `lua/usual-one.lua` give.
 * @param text that the call was sent with
 * @throws SluiceError when it is not the answer to this call
 */
export function decodeReply(reply: unknown, text: string, rows: readonly Row[]): CallReply {
  if (!Array.isArray(reply)) throw unanswered(text)
  const [first] = reply
  // A request alone is answered by its report and the time.
  const isLone = reply.length === 2 && rows.length === 1 && first !== text
  if (!isLone && first !== text) throw unanswered(text)
  const reader = new ReportReader(reply, isLone ? 0 : 2, text)
  const now = integer(reply[1], text)
  const answers: Answer[] = []
  for (let i = 0; i < rows.length; i += 1) {
    const row = rows[i]
    if (row) answers.push(answerOf(row, reader, now))
  }
  return { answers, unreadable: isLone ? 0 : reader.rest() }
}

function answerOf({ op, checks }: Row, reader: ReportReader, now: number): Answer {
  const takes = op === 'consume' || op === 'charge'
  const settles = !takes && op !== 'peek'
  let failure: SluiceError | undefined
  const outcomes: Outcome[] = []
  for (let i = 0; i < checks.length; i += 1) {
    const check = checks[i]
    if (!check) continue
    const said = reader.next()
    if (typeof said === 'string') {
      failure ??= failedRow(said)
      continue
    }
    const isAllowed = said || settles
    const known = { now, isAllowed, isTaken: takes && isAllowed }
    const outcome = readOutcome[check.policy.algorithm](check, reader.report, known)
    outcomes.push(said || isAllowed === said ? outcome : notFound(op, outcome))
  }
  return failure ?? outcomes
}

/** The store is there, and decides others: this is no reason to leave it. */
function failedRow(reason: string): SluiceError {
  return new SluiceError(
    'SLUICE_STORE_CHECK',
    `Redis answered, and could not decide this check: ${reason}`,
  )
}

/** Where there was nothing to settle; a lease that could not be renewed has to be asked for again. */
function notFound(op: StoreOp, outcome: Outcome): Outcome {
  const retryAfterMs = op === 'renew' ? outcome.policy.retryMs : 0
  return { ...outcome, allowed: false, retryAfterMs }
}

/** Goes through the reports of a reply. */
class ReportReader {
  /** The report that was read last: one object for all, since there are many. */
  readonly report: { -readonly [field in keyof Report]: Report[field] } = {
    x: 0,
    y: 0,
    incarnation: 0,
    more: undefined,
  }
  readonly #reply: readonly unknown[]
  readonly #text: string
  #at: number

  constructor(reply: readonly unknown[], from: number, text: string) {
    this.#reply = reply
    this.#at = from
    this.#text = text
  }

  /** Reads the next report; returns whether its request is allowed, or had anything to settle, or why it could not be decided. */
  next(): boolean | string {
    const value = this.#reply[this.#at]
    this.#at += 1
    const { report } = this
    if (Array.isArray(value)) {
      const [allowed, x, y, incarnation, more] = value
      if (Number(allowed) === -1) return String(x)
      report.x = integer(x, this.#text)
      report.y = integer(y, this.#text)
      report.incarnation = integer(incarnation, this.#text)
      report.more = more === undefined ? undefined : integer(more, this.#text)
      return integer(allowed, this.#text) === 1
    }
    const signed = integer(value, this.#text)
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
    if (this.#at === this.#reply.length - 1) return integer(this.#reply[this.#at], this.#text)
    throw unanswered(this.#text)
  }
}

/** Clients can be set to give integers as texts. */
function integer(value: unknown, text: string): number {
  const number = typeof value === 'number' ? value : Number(value ?? Number.NaN)
  if (!Number.isSafeInteger(number)) throw unanswered(text)
  return number
}

function unanswered(text: string): SluiceError {
  return new SluiceError('SLUICE_STORE_REPLY', `call ${text} got a reply that does not answer it`)
}
