import {
  type Check,
  type Outcome,
  type Policy,
  Receipt,
  SluiceError,
  type StoreOp,
} from '@sluice/core'

/** One request as it travels in a call: an operation on its checks, and the key of each in Redis. */
export interface Row {
  readonly op: StoreOp
  readonly checks: readonly Check[]
  readonly keys: readonly string[]
}

/** The packed arguments of a call, whose forms `lua/decide.lua` gives. */
export interface EncodedCall {
  /** Distinct keys. */
  readonly keys: readonly string[]
  readonly policies: Buffer
  readonly rows: Buffer
}

/** What a call came to. */
export interface CallReply {
  /** For each row, its outcomes. */
  readonly outcomes: readonly (readonly Outcome[])[]
  /** Stored values that could not be read, and counted as empty. */
  readonly unreadable: number
}

const algorithmNumbers: { readonly [name in Policy['algorithm']]: number } = {
  'sliding-log': 1,
  'sliding-counter': 2,
  'fixed-window': 3,
}
const opNumbers: { readonly [op in StoreOp]: number } = {
  consume: 1,
  peek: 2,
  charge: 3,
  refund: 4,
  reset: 5,
}
const policyBytes = 23
const checkBytes = 11
const receiptBytes = 11
const fieldsPerCheck = 5

/** Numbers what rows share, so that a key and a policy travel once in a call. */
class Numbering<Key, Value> {
  readonly values: Value[] = []
  readonly #numbers = new Map<Key, number>()

  numberOf(key: Key, value: Value): number {
    const known = this.#numbers.get(key)
    if (known !== undefined) return known
    this.values.push(value)
    this.#numbers.set(key, this.values.length)
    return this.values.length
  }
}

export function encodeCall(rows: readonly Row[]): EncodedCall {
  const keys = new Numbering<string, string>()
  const policies = new Numbering<string, Check>()
  const buffer = Buffer.alloc(rows.reduce((bytes, row) => bytes + rowBytes(row), 0))
  let at = 0
  for (const row of rows) {
    at = buffer.writeUInt8(opNumbers[row.op], at)
    at = buffer.writeUInt8(row.checks.length, at)
    for (const [index, check] of row.checks.entries()) {
      const key = row.keys[index] ?? ''
      at = buffer.writeUInt16LE(policies.numberOf(`${check.policy.id} ${check.limit}`, check), at)
      at = buffer.writeUInt16LE(keys.numberOf(key, key), at)
      at = writeUInt56(buffer, check.cost, at)
      if (row.op === 'refund') {
        at = writeUInt56(buffer, check.receipt?.at ?? 0, at)
        at = buffer.writeUInt32LE(Number(check.receipt?.incarnation ?? 0), at)
      }
    }
  }
  return { keys: keys.values, policies: encodePolicies(policies.values), rows: buffer }
}

/**
 * Decodes the reply of a call.
 * @throws SluiceError when it is not the answer to this call
 */
export function decodeReply(reply: unknown, callNumber: number, rows: readonly Row[]): CallReply {
  const numbers = Array.isArray(reply) ? reply.map(Number) : []
  const checks = rows.reduce((sum, row) => sum + row.checks.length, 0)
  const fits = numbers.length === 2 + checks * fieldsPerCheck && numbers.every(Number.isSafeInteger)
  if (!fits || numbers[0] !== callNumber) {
    throw new SluiceError(
      'SLUICE_STORE_REPLY',
      `call ${callNumber} got a reply that does not answer it`,
    )
  }
  let at = 2
  const outcomes = rows.map((row) =>
    row.checks.map((check) => {
      at += fieldsPerCheck
      return decodeOutcome(check, numbers.slice(at - fieldsPerCheck, at))
    }),
  )
  return { outcomes, unreadable: numbers[1] ?? 0 }
}

function decodeOutcome(check: Check, fields: readonly number[]): Outcome {
  const [retryMs = -1, remaining, resetMs, takenAt = -1, incarnation] = fields
  const outcome: Outcome = {
    policy: check.policy,
    allowed: retryMs === 0,
    limit: check.limit,
    remaining,
    resetMs,
    retryAfterMs: retryMs < 0 ? Number.POSITIVE_INFINITY : retryMs,
  }
  return takenAt < 0 ? outcome : { ...outcome, receipt: new Receipt(check, takenAt, incarnation) }
}

function encodePolicies(checks: readonly Check[]): Buffer {
  const buffer = Buffer.alloc(checks.length * policyBytes)
  let at = 0
  for (const { policy, limit } of checks) {
    at = buffer.writeUInt8(algorithmNumbers[policy.algorithm], at)
    at = buffer.writeUInt8((policy.clockAligned ? 1 : 0) + (policy.countDenied ? 2 : 0), at)
    at = writeUInt56(buffer, limit, at)
    at = writeUInt56(buffer, policy.windowMs, at)
    at = writeUInt56(buffer, policy.resolutionMs, at)
  }
  return buffer
}

function rowBytes({ op, checks }: Row): number {
  return 2 + checks.length * (checkBytes + (op === 'refund' ? receiptBytes : 0))
}

/** Seven bytes, little-endian: room for every safe integer. Buffer itself writes at most six. */
function writeUInt56(buffer: Buffer, value: number, at: number): number {
  buffer.writeUIntLE(value % 2 ** 48, at, 6)
  return buffer.writeUInt8(Math.floor(value / 2 ** 48), at + 6)
}
