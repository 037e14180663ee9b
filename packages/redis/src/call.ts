import {
  algorithms,
  type Check,
  type Outcome,
  type Policy,
  SluiceError,
  type StoreOp,
} from '@sluice/core'
import { type Report, readOutcome } from './outcomes.ts'
import { type Group, type MergedRow, type Row, RowGroups } from './row-groups.ts'

/** What a call says of itself, beside its rows. */
export interface CallHeader {
  /** Echoed by the script, so that a reply can be told from one to another call. */
  readonly number: number
  /** Milliseconds since the epoch; `undefined` for the server's clock. */
  readonly now: number | undefined
  readonly isServerClock: boolean
  /** Milliseconds that a key outlives its last unit at least. */
  readonly ttlMargin: number
  /** u32 from which the incarnations of the call are counted. */
  readonly incarnation: number
}

/** Rows as they travel, in the forms that `lua/decide.lua` gives. */
export interface EncodedCall {
  readonly groups: readonly Group[]
  readonly keys: readonly string[]
  readonly json: string
}

/** What a row came to. */
export type Answer = readonly Outcome[] | SluiceError

/** What a call came to. */
export interface CallReply {
  /** In the order of the rows; an error for a row that the script could not decide. */
  readonly answers: readonly Answer[]
  /** Stored values that could not be read, and counted as empty. */
  readonly unreadable: number
}

export function encodeCall(rows: readonly Row[], header: CallHeader): EncodedCall {
  const { groups, policies } = new RowGroups(rows)
  const keys: string[] = []
  for (const { merged } of groups) {
    for (const { row } of merged) for (const key of row.keys) keys.push(key)
  }
  const own = JSON.stringify(header).slice(0, -1)
  const json = `${own},"policies":[${policies.map(encodePolicy).join()}],"groups":[${groups.map(encodeGroup).join()}]}`
  return { groups, keys, json }
}

/** As JSON, by policy and limit, since they are the same for every call. */
const encodedPolicies = new WeakMap<Policy, Map<number, string>>()
/** Limits may be computed for each request. */
const mostLimits = 100

function encodePolicy(check: Check): string {
  const { policy, limit } = check
  let limits = encodedPolicies.get(policy)
  if (!limits || limits.size >= mostLimits) {
    limits = new Map()
    encodedPolicies.set(policy, limits)
  }
  const known = limits.get(limit)
  if (known !== undefined) return known
  const json = JSON.stringify({
    algorithm: policy.algorithm,
    limit,
    window: policy.windowMs,
    capacity: algorithms[policy.algorithm].capacityLevel?.(check) ?? limit,
    resolution: policy.resolutionMs,
    aligned: policy.clockAligned,
    count_denied: policy.countDenied,
    block_for: policy.penalty?.forMs,
    block_factor: policy.penalty?.factor,
    block_most: policy.penalty?.maxMs,
  })
  limits.set(limit, json)
  return json
}

/** What is the same for every row, as it mostly is, is left out. */
function encodeGroup({ op, shape, merged, repeats }: Group): string {
  const isPlain = merged.every(({ row }) => row.checks.every(({ cost }) => cost === 1))
  const isSingle = merged.every(({ positions }) => positions.length === 1)
  const hasReceipts = op === 'refund' || op === 'release' || op === 'renew'
  const more = [
    repeats ? ',"repeats":true' : '',
    isPlain
      ? ''
      : list(
          'costs',
          merged.flatMap(({ row }) => row.checks.map(({ cost }) => cost)),
        ),
    isSingle
      ? ''
      : list(
          'counts',
          merged.map(({ positions }) => positions.length),
        ),
    hasReceipts
      ? list(
          'receipts',
          merged.flatMap(({ row }) => row.checks.flatMap(receiptOf)),
        )
      : '',
  ]
  return `{"op":"${op}","shape":[${shape.join()}],"rows":${merged.length}${more.join('')}}`
}

function list(name: string, numbers: readonly number[]): string {
  return `,"${name}":[${numbers.join()}]`
}

function receiptOf({ receipt, refunded = 0 }: Check): readonly number[] {
  return [receipt?.at ?? 0, Number(receipt?.incarnation ?? 0), refunded]
}

/**
 * Decodes the reply of a call.
 * @throws SluiceError when it is not the answer to this call
 */
export function decodeReply(
  reply: unknown,
  callNumber: number,
  groups: readonly Group[],
): CallReply {
  const reader = new ReplyReader(reply)
  const reason = reader.takeReason()
  const number = reader.next()
  const now = reader.next()
  const unreadable = reader.next()
  const refused = reader.takeRefused()
  const answers: Answer[] = []
  let rowNumber = 0
  if (number === callNumber) {
    for (const { op, merged } of groups) {
      for (const row of merged) {
        rowNumber += 1
        const allowed = refused?.get(rowNumber) ?? row.positions.length
        if (allowed < 0) for (const at of row.positions) answers[at] = failedRow(reason)
        else readRow(row, { op, now, allowed, reader, answers })
      }
    }
  }
  if (number !== callNumber || !reader.isRead) {
    throw new SluiceError(
      'SLUICE_STORE_REPLY',
      `call ${callNumber} got a reply that does not answer it`,
    )
  }
  return { answers, unreadable }
}

/** The store is there, and decides others: this is no reason to leave it. */
function failedRow(reason: string): SluiceError {
  return new SluiceError(
    'SLUICE_STORE_CHECK',
    `Redis answered, and could not decide this check: ${reason}`,
  )
}

interface Reading {
  readonly op: Row['op']
  readonly now: number
  /** How many of the equal requests are allowed. */
  readonly allowed: number
  readonly reader: ReplyReader
  readonly answers: Answer[]
}

function readRow({ row: { checks }, positions }: MergedRow, reading: Reading): void {
  const { op, now, allowed, reader, answers } = reading
  const isRefused = allowed < positions.length
  const takes = op === 'consume' || op === 'charge'
  const reports = checks.map(({ policy: { algorithm } }) =>
    // Only the script can tell how long a log has to be waited for, and how long a request of a queue is held.
    reader.report(
      algorithm === 'sliding-log' ? isRefused : algorithm === 'leaky-bucket' && allowed > 0,
    ),
  )
  for (let i = 0; i < positions.length; i += 1) {
    const isAllowed = i < allowed
    const answer = {
      now,
      isAllowed,
      isTaken: takes && isAllowed,
      later: isAllowed ? allowed - 1 - i : 0,
    }
    answers[positions[i] ?? 0] = checks.map((check, index) => {
      const report = reports[index] ?? nothing
      const outcome = readOutcome[check.policy.algorithm](check, report, answer)
      return settles(op) && report.incarnation === 0 ? notFound(op, outcome) : outcome
    })
  }
}

/** Whether the script says in place of an incarnation if there was anything to settle. */
function settles(op: StoreOp): boolean {
  return op !== 'consume' && op !== 'peek' && op !== 'charge'
}

/** Where there was nothing to settle; a lease that could not be renewed has to be asked for again. */
function notFound(op: StoreOp, outcome: Outcome): Outcome {
  const retryAfterMs = op === 'renew' ? outcome.policy.retryMs : 0
  return { ...outcome, allowed: false, retryAfterMs }
}

/** Where the two numbers of a report meet in one integer. */
const ySpan = 2 ** 27

const nothing: Report = { x: 0, y: 0, incarnation: 0, more: 0 }

/** Goes through the integers of a reply, and notices whether they are what was expected. */
class ReplyReader {
  readonly #values: readonly unknown[]
  #at = 0
  #end: number
  #isSound = true

  constructor(reply: unknown) {
    this.#values = Array.isArray(reply) ? reply : []
    this.#end = this.#values.length
  }

  /** Whether all was read, and nothing but integers. */
  get isRead(): boolean {
    return this.#isSound && this.#at === this.#end
  }

  /** From the end of the reply: why rows failed; empty where none did. */
  takeReason(): string {
    const last = this.#values[this.#end - 1]
    if (typeof last !== 'string' || !Number.isNaN(Number(last))) return ''
    this.#end -= 1
    return last
  }

  /** From the end of the reply: the rows of which not all requests are allowed, and how many are; `undefined` for none. */
  takeRefused(): ReadonlyMap<number, number> | undefined {
    const at = this.#at
    this.#at = this.#end - 1
    const length = this.next()
    if (length === 0) {
      this.#end -= 1
      this.#at = at
      return undefined
    }
    this.#end -= 1 + 2 * length
    this.#at = this.#end
    const refused = new Map<number, number>()
    for (let i = 0; i < length && this.#isSound; i += 1) refused.set(this.next(), this.next())
    this.#at = at
    return refused
  }

  report(hasMore: boolean): Report {
    const packed = this.next()
    if (packed >= 0) {
      const y = packed % ySpan
      const more = hasMore ? this.next() : 0
      return { x: (packed - y) / ySpan, y, incarnation: 0, more }
    }
    const x = this.next()
    const y = this.next()
    const incarnation = packed === -2 ? this.next() : 0
    return { x, y, incarnation, more: hasMore ? this.next() : 0 }
  }

  next(): number {
    const value = this.#values[this.#at]
    this.#at += 1
    // Clients can be set to give integers as texts.
    const number = typeof value === 'number' ? value : Number(value ?? Number.NaN)
    if (!Number.isSafeInteger(number)) this.#isSound = false
    return number
  }
}
