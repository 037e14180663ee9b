import { type Outcome, SluiceError } from '@sluice/core'
import { type Answer, type Report, readOutcome } from './outcomes.ts'
import type { Row } from './row.ts'

/** What a call came to. */
export interface CallReply {
  /** In the order of the rows. */
  readonly outcomes: readonly (readonly Outcome[])[]
  /** Stored values that could not be read, and counted as empty. */
  readonly unreadable: number
}

/** Where the two numbers of a report meet in one integer. */
const ySpan = 2 ** 27

/**
 * Decodes the reply of a call, in the forms that `lua/shared.lua` and `lua/usual.lua` give.
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
  const outcomes: (readonly Outcome[])[] = []
  for (let i = 0; i < rows.length; i += 1) {
    const row = rows[i]
    if (row) outcomes.push(outcomesOf(row, reader, now))
  }
  return { outcomes, unreadable: isLone ? 0 : reader.rest() }
}

function outcomesOf({ op, checks }: Row, reader: ReportReader, now: number): readonly Outcome[] {
  const takes = op === 'consume' || op === 'charge'
  const outcomes: Outcome[] = []
  for (let i = 0; i < checks.length; i += 1) {
    const check = checks[i]
    if (!check) continue
    const isAllowed = reader.next()
    const answer: Answer = { now, isAllowed, isTaken: takes && isAllowed }
    const outcome = readOutcome[check.policy.algorithm](check, reader.report, answer)
    outcomes.push(op === 'renew' && !isAllowed ? notHeld(outcome) : outcome)
  }
  return outcomes
}

/** A lease that could not be renewed. */
function notHeld(outcome: Outcome): Outcome {
  return { ...outcome, allowed: false, retryAfterMs: outcome.policy.retryMs }
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

  /** Reads the next report; returns whether its request is allowed. */
  next(): boolean {
    const value = this.#reply[this.#at]
    this.#at += 1
    const { report } = this
    if (Array.isArray(value)) {
      const [allowed, x, y, incarnation, more] = value
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
