import {
  type DecisionEvent,
  invalid,
  isPromise,
  knownFields,
  notify,
  wholeNumber,
} from '@sluice/core'

/** One denied request, or so many like it. */
export interface DenialRecord {
  readonly type: 'denial'
  /** ISO 8601, in UTC. */
  readonly time: string
  readonly route: string | undefined
  readonly method: string | undefined
  readonly policy: string | undefined
  readonly limit: number | undefined
  readonly used: number | undefined
  readonly resetMs: number | undefined
  /** `undefined` where waiting cannot help. */
  readonly retryAfterMs: number | undefined
  /** Stands for the identity. */
  readonly digest: string | undefined
  readonly answeredBy: string
  readonly traceId: string | undefined
  /** Denials since the last record of this policy, with this one: 1 until there are too many. */
  readonly factor: number
  /** Fields that `fields` added, as JSON can carry them. */
  readonly fields?: unknown
  /**
   * The reason for missing fields, or a missing `traceId`: the function threw, it returned a
   * promise, or the fields were too long.
   */
  readonly fieldsError?: string
}

/** Summary of a minute in which some denials got no record. */
export interface DenialSummary {
  readonly type: 'denial-summary'
  readonly time: string
  /** Span of the summary, in ms. */
  readonly forMs: number
  readonly policies: readonly PolicyDenials[]
}

/** Denials of one policy, and the records that were written of them. */
export interface PolicyDenials {
  readonly policy: string
  readonly denials: number
  readonly records: number
  /** Denials since the last record: the factors of the records and these add up to `denials`. */
  readonly unrecorded: number
}

/** Options of `denialLog`. */
export interface DenialLogOptions<Request = unknown> {
  /**
   * Takes each record: `(record) => log.warn(record)`. Its errors are reported once, and affect no
   * request.
   */
  sink: (record: DenialRecord | DenialSummary) => void
  /**
   * Adds what you know of the request at once, without promises: anything that JSON can carry, up
   * to 4,000 characters. Leave identities out. @default nothing
   */
  fields?: (request: Request | undefined) => unknown
  /** Finds the id of the trace of the request at once, without a promise. @default none */
  traceId?: (request: Request | undefined) => string | undefined
  /**
   * Denials of one policy that get a record each in any second: 1 to 1,000. Of further ones, fewer
   * and fewer do. @default 5
   */
  perSecond?: number
}

/** An observer that writes denials to a log. */
export interface DenialLog<Request = unknown> {
  onDecision(event: DecisionEvent<Request>): void
  /** Writes the summary that is due, for the end of a process. */
  flush(): void
}

const secondMs = 1_000
const minuteMs = 60_000
const maxFieldsLength = 4_000
/** Policies that are told apart; all further ones share the bound of one. */
const maxPolicies = 200

/** Counts of one policy. */
interface Tally {
  secondAt: number
  inSecond: number
  denials: number
  records: number
  /** Denials since the last record. */
  unrecorded: number
}

/**
 * Writes one record for each denial, and bounds itself: of each policy the first `perSecond`
 * denials of a second get a record. Then one in 10 does, one in 100 once there are ten times as
 * many, and so on. Each record says for how many denials it stands. If denials had no record, a
 * summary follows each minute.
 * @example
 * const denials = denialLog({ sink: (record) => log.warn(record) })
 * rateLimit({ limit: 100, window: '1m', observers: [denials] })
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function denialLog<Request = unknown>(
  options: DenialLogOptions<Request>,
): DenialLog<Request> {
  knownFields(options, 'denialLog', ['sink', 'fields', 'traceId', 'perSecond'])
  const { sink, fields, traceId } = options
  if (typeof sink !== 'function') throw invalid({ option: 'sink' }, sink, 'a function of a record')
  for (const [option, value] of Object.entries({ fields, traceId })) {
    if (value !== undefined && typeof value !== 'function') {
      throw invalid({ option }, value, 'a function of the request')
    }
  }
  const perSecond = wholeNumber(
    options.perSecond ?? 5,
    { option: 'perSecond' },
    { min: 1, max: 1_000 },
  )
  const tallies = new Map<string, Tally>()
  let summary: { readonly timer: NodeJS.Timeout; readonly since: number } | undefined

  function tallyOf(policy: string): Tally {
    const name = tallies.has(policy) || tallies.size < maxPolicies ? policy : 'other'
    const known = tallies.get(name)
    if (known) return known
    const tally = { secondAt: 0, inSecond: 0, denials: 0, records: 0, unrecorded: 0 }
    tallies.set(name, tally)
    return tally
  }

  /** Counts from this denial on: each one before it had its record. */
  function beginSummary(first: Tally): void {
    for (const tally of tallies.values()) {
      tally.denials = tally === first ? 1 : 0
      tally.records = 0
    }
    summary = { since: Date.now(), timer: unrefed(setTimeout(flush, minuteMs)) }
  }

  function flush(): void {
    if (!summary) return
    clearTimeout(summary.timer)
    const policies = [...tallies]
      .filter(([, { denials, records }]) => denials > records)
      .map(([policy, { denials, records, unrecorded }]) => ({
        policy,
        denials,
        records,
        unrecorded,
      }))
    const forMs = Math.max(0, Date.now() - summary.since)
    summary = undefined
    tallies.clear()
    const time = new Date().toISOString()
    notify(sink, { type: 'denial-summary', time, forMs, policies })
  }

  function recordOf(event: DecisionEvent<Request>, factor: number): DenialRecord {
    const { decision, policy, request, route, method, digest, answeredBy } = event
    const outcome = decision.outcomes.find((each) => each.policy === policy)
    const { limit, remaining, resetMs } = outcome ?? {}
    const waits = Number.isFinite(decision.retryAfterMs)
    return {
      type: 'denial',
      time: new Date().toISOString(),
      route,
      method,
      policy: policy?.name,
      limit,
      used: limit === undefined || remaining === undefined ? undefined : limit - remaining,
      resetMs,
      retryAfterMs: waits ? decision.retryAfterMs : undefined,
      digest,
      answeredBy,
      traceId: undefined,
      factor,
      ...(traceId && traced(() => traceId(request))),
      ...(fields && written(() => fields(request))),
    }
  }

  return {
    onDecision(event) {
      if (event.decision.allowed) return
      const tally = tallyOf(event.policy?.name ?? event.answeredBy)
      const isRecorded = hasRecord(tally, perSecond, Date.now())
      tally.denials += 1
      tally.unrecorded += 1
      if (!isRecorded) {
        if (!summary) beginSummary(tally)
        return
      }
      const factor = tally.unrecorded
      tally.records += 1
      tally.unrecorded = 0
      notify(sink, recordOf(event, factor))
    },
    flush,
  }
}

/** Tells whether the next denial gets a record. */
function hasRecord(tally: Tally, perSecond: number, nowMs: number): boolean {
  const second = Math.floor(nowMs / secondMs)
  if (tally.secondAt !== second) {
    tally.secondAt = second
    tally.inSecond = 0
  }
  tally.inSecond += 1
  const over = tally.inSecond - perSecond
  if (over <= 0) return true
  // One in 10 up to 100 more, one in 100 up to 1,000 more, and so on.
  const step = 10 ** Math.max(1, Math.ceil(Math.log10(over + 1)) - 1)
  return over % step === 0
}

/**
 * Returns the fields of the user's function as JSON: bounded, without cycles. An error of it never
 * reaches a request.
 */
function written(find: () => unknown): Pick<DenialRecord, 'fields' | 'fieldsError'> {
  let hasPromise = false
  function withoutPromises(_: string, value: unknown): unknown {
    if (!isPromise(value)) return value
    hasPromise = true
    leaveAlone(value)
    return undefined
  }
  try {
    const text = JSON.stringify(find(), withoutPromises) ?? 'null'
    if (hasPromise) return { fieldsError: 'fields has a promise: return what is known at once' }
    if (text.length <= maxFieldsLength) return { fields: JSON.parse(text) }
    return { fieldsError: `fields are ${text.length} characters long: ${maxFieldsLength} at most` }
  } catch (error) {
    return { fieldsError: reasonOf(error) }
  }
}

/** The id of a trace; a record without it is better than none. */
function traced(find: () => unknown): Partial<Pick<DenialRecord, 'traceId' | 'fieldsError'>> {
  try {
    const id = find()
    if (typeof id === 'string') return { traceId: id }
    if (!isPromise(id)) return {}
    leaveAlone(id)
    return { fieldsError: 'traceId returned a promise: return the id at once' }
  } catch (error) {
    return { fieldsError: reasonOf(error) }
  }
}

/** Has nobody wait for a promise: where it rejects, that is no error of the process. */
function leaveAlone(promise: Promise<unknown>): void {
  Promise.resolve(promise).catch(() => {
    // The record says already that a promise cannot be used.
  })
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message.slice(0, 200) : 'no Error'
}

function unrefed(timer: NodeJS.Timeout): NodeJS.Timeout {
  timer.unref()
  return timer
}
