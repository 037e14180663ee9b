/** The answer to a request; `reset` is a reset of its key, not a request. */
export type HistoryDecision =
  | 'allowed'
  | 'denied'
  /** Admitted, and its units were, or may have been, given back by `end`. */
  | 'refunded'
  /** Nobody saw the answer. */
  | 'unknown'
  | 'reset'

/** One request under one policy: a line of JSON in a history. All times are of one clock. */
export interface HistoryLine {
  /** Time (ms) at which the limiter was called. */
  readonly start: number
  /** Time (ms) at which it answered, or `null` without an answer. */
  readonly end: number | null
  readonly process: string
  readonly key: string
  readonly policy: string
  readonly decision: HistoryDecision
  /** Units of the request. @default 1 */
  readonly cost?: number
  /** Limit of this request. @default the limit of the law */
  readonly limit?: number
  /** Remaining units, according to the answer. */
  readonly remaining?: number
  /** Wait (ms) in the answer; `null` if the request can never pass. */
  readonly retryAfterMs?: number | null
  /** Replaces an earlier line of the same process with the same id. */
  readonly id?: string | number
}

const decisions: readonly unknown[] = ['allowed', 'denied', 'refunded', 'unknown', 'reset']

/**
 * Parses the lines of a history. An unterminated last line is ignored, since its process may have
 * been killed.
 * @throws {TypeError} if a line is not JSON, or a field is missing or has the wrong type
 */
export function readHistory(text: string): readonly HistoryLine[] {
  const lines = text.split('\n').slice(0, -1)
  return lines.flatMap((line, index) => (line.trim() === '' ? [] : [decode(line, index + 1)]))
}

function decode(text: string, number: number): HistoryLine {
  const fail = (what: string): never => {
    throw new TypeError(`line ${number} of the history: ${what}`)
  }
  let line: Record<string, unknown>
  try {
    line = JSON.parse(text)
  } catch {
    return fail('must be JSON')
  }
  if (typeof line !== 'object' || line === null) return fail('must be an object')
  for (const field of ['process', 'key', 'policy']) {
    if (typeof line[field] !== 'string') fail(`${field} must be a string`)
  }
  if (!decisions.includes(line.decision)) fail(`decision must be one of ${decisions.join(', ')}`)
  const isNumber = (field: string) => typeof line[field] === 'number'
  const isOptional = (field: string) => line[field] === undefined || isNumber(field)
  if (!isNumber('start')) fail('start must be a time in ms')
  if (line.end !== null && !(Number(line.end) >= Number(line.start))) {
    fail('end must be a time in ms, not before start, or null')
  }
  for (const field of ['cost', 'limit', 'remaining']) {
    if (!isOptional(field)) fail(`${field} must be a number`)
  }
  if (line.retryAfterMs !== null && !isOptional('retryAfterMs')) {
    fail('retryAfterMs must be a number or null')
  }
  return line as unknown as HistoryLine
}
