import {
  countOption,
  type DecisionEvent,
  flagOption,
  functionOption,
  invalid,
  notify,
  type Option,
  type OptionsOf,
  type Outcome,
  type RequiredOption,
  readOptions,
  type ShadowEvent,
} from '@sluice/core'
import { usageOf } from '@sluice/core/backend'
import { type AddedFields, traced, written } from './added-fields.ts'

/** One denied request, or a number of similar ones. */
export interface DenialRecord extends AddedFields {
  /** `shadow-denial`: a shadow policy would have denied the request, which passed. */
  readonly type: 'denial' | 'shadow-denial'
  /** ISO 8601, in UTC. */
  readonly time: string
  readonly route: string | undefined
  readonly method: string | undefined
  readonly policy: string | undefined
  readonly limit: number | undefined
  readonly used: number | undefined
  readonly resetMs: number | undefined
  /** `undefined` if waiting cannot help. */
  readonly retryAfterMs: number | undefined
  /** Digest of the identity. */
  readonly digest: string | undefined
  /** `undefined` in a `shadow-denial`. */
  readonly answeredBy: string | undefined
  readonly traceId: string | undefined
  /**
   * Denials since the last record of this policy, including this one: 1 until there are too many.
   */
  readonly factor: number
}

/** Summary of a minute in which some denials got no record. */
export interface DenialSummary {
  readonly type: 'denial-summary'
  readonly time: string
  /** Span of the summary, in ms. */
  readonly forMs: number
  readonly policies: readonly PolicyDenials[]
}

/** Denials of one policy, and the records written for them. */
export interface PolicyDenials {
  readonly policy: string
  /** True for the denials of a shadow policy, which refused nobody. */
  readonly shadow?: true
  readonly denials: number
  readonly records: number
  /** Denials since the last record: the factors of the records and these add up to `denials`. */
  readonly unrecorded: number
}

/** The options of `denialLog`. */
class DenialLogTable<Request> {
  /**
   * Receives each record: `(record) => log.warn(record)`. Its errors are reported once and affect
   * no request.
   */
  sink: RequiredOption<(record: DenialRecord | DenialSummary) => void> = (sink, option) => {
    if (typeof sink === 'function') return sink
    throw invalid({ option }, sink, 'a function of a record')
  }
  /**
   * Returns what you know about the request, synchronously: anything that JSON can represent, up to
   * 4,000 characters. Leave identities out. @default nothing
   */
  fields?: Option<(request: Request | undefined) => unknown> = ofRequest
  /** Returns the trace id of the request, synchronously. @default none */
  traceId?: Option<(request: Request | undefined) => string | undefined> = ofRequest
  /**
   * Rate (denials per second) up to which all denials by a policy are recorded: 1 to 1,000. Beyond
   * that, fewer and fewer are recorded. @default 5
   */
  perSecond?: Option<number, number> = countOption(5, { min: 1, max: 1_000 })
  /**
   * Writes a record of type `shadow-denial` for each request that a shadow policy would have
   * denied, with a separate bound for each policy. @default false
   */
  shadow?: Option<boolean, boolean> = flagOption(false)
}

const ofRequest = functionOption('a function of the request')

/** Options of `denialLog`. */
export interface DenialLogOptions<Request = unknown> extends OptionsOf<DenialLogTable<Request>> {}

/** An observer that writes denials to a log. */
export interface DenialLog<Request = unknown> {
  onDecision(event: DecisionEvent<Request>): void
  /** Only with the option `shadow`. */
  onShadow?(event: ShadowEvent<Request>): void
  /** Writes the pending summary, before a process exits. */
  flush(): void
}

const secondMs = 1_000
const minuteMs = 60_000
/** Maximum number of policies counted separately; all further ones share one bound. */
const maxPolicies = 200

/** Counts of one policy, for records of one type. */
interface Tally {
  readonly policy: string
  readonly type: DenialRecord['type']
  secondAt: number
  inSecond: number
  denials: number
  records: number
  /** Denials since the last record. */
  unrecorded: number
}

/** A denial that may get a record. */
interface Denied<Request> extends Pick<DenialRecord, 'answeredBy' | 'digest' | 'policy' | 'type'> {
  readonly source: Pick<DecisionEvent<Request>, 'request' | 'route' | 'method'>
  readonly outcome: Outcome | undefined
  readonly waitMs: number
}

/**
 * Writes one record per denial, within a bound: in each second, the first `perSecond` denials of a
 * policy get a record. After that one in 10 does, then one in 100 once there are ten times as many,
 * and so on. Each record says how many denials it represents. If denials got no record, a summary
 * follows each minute.
 * @example
 * const denials = denialLog({ sink: (record) => log.warn(record) })
 * rateLimit({ limit: 100, window: '1m', observers: [denials] })
 * @throws SluiceError if an option is unknown, missing or out of range
 */
export function denialLog<Request = unknown>(
  options: DenialLogOptions<Request>,
): DenialLog<Request> {
  const settings = readOptions(new DenialLogTable<Request>(), options, 'denialLog')
  const { sink, fields, traceId, perSecond } = settings
  const tallies = new Map<string, Tally>()
  let summary: { readonly timer: NodeJS.Timeout; readonly since: number } | undefined

  function tallyOf(named: string, type: Tally['type']): Tally {
    const isNamed = tallies.has(`${type} ${named}`) || tallies.size < maxPolicies
    const policy = isNamed ? named : 'other'
    const known = tallies.get(`${type} ${policy}`)
    if (known) return known
    const counts = { secondAt: 0, inSecond: 0, denials: 0, records: 0, unrecorded: 0 }
    const tally = { policy, type, ...counts }
    tallies.set(`${type} ${policy}`, tally)
    return tally
  }

  /** Counts from this denial on: every earlier one got a record. */
  function beginSummary(first: Tally): void {
    for (const tally of tallies.values()) {
      tally.denials = tally === first ? 1 : 0
      tally.records = 0
    }
    summary = { since: Date.now(), timer: setTimeout(flush, minuteMs).unref() }
  }

  function flush(): void {
    if (!summary) return
    clearTimeout(summary.timer)
    const policies = [...tallies.values()]
      .filter(({ denials, records }) => denials > records)
      .map(({ policy, type, denials, records, unrecorded }) => ({
        policy,
        ...(type === 'shadow-denial' && { shadow: true as const }),
        ...{ denials, records, unrecorded },
      }))
    const forMs = Math.max(0, Date.now() - summary.since)
    summary = undefined
    tallies.clear()
    const time = new Date().toISOString()
    notify(sink, { type: 'denial-summary', time, forMs, policies })
  }

  function recordOf({ source, outcome, waitMs, ...denied }: Denied<Request>, factor: number) {
    const { request, route, method } = source
    const { type, policy, digest, answeredBy } = denied
    const { limit, resetMs } = outcome ?? {}
    return {
      type,
      time: new Date().toISOString(),
      ...{ route, method, policy, limit },
      used: outcome && usageOf(outcome).used,
      resetMs,
      retryAfterMs: Number.isFinite(waitMs) ? waitMs : undefined,
      ...{ digest, answeredBy, traceId: undefined, factor },
      ...(traceId && traced(() => traceId(request))),
      ...(fields && written(() => fields(request))),
    }
  }

  /** Counts a denial, and writes its record if it gets one. */
  function note(named: string, denied: Denied<Request>): void {
    const tally = tallyOf(named, denied.type)
    tally.denials += 1
    tally.unrecorded += 1
    if (!hasRecord(tally, perSecond, Date.now())) {
      if (!summary) beginSummary(tally)
      return
    }
    const factor = tally.unrecorded
    tally.records += 1
    tally.unrecorded = 0
    notify(sink, recordOf(denied, factor))
  }

  function onShadow(event: ShadowEvent<Request>): void {
    for (const [index, outcome] of event.outcomes.entries()) {
      if (outcome.allowed) continue
      const { name: policy } = outcome.policy
      const [digest, waitMs] = [event.digests[index], outcome.retryAfterMs]
      const denied = { source: event, policy, outcome, digest, answeredBy: undefined, waitMs }
      note(policy, { type: 'shadow-denial', ...denied })
    }
  }

  return {
    onDecision(event) {
      const { decision, policy, answeredBy, digest } = event
      if (decision.allowed) return
      const outcome = decision.outcomes.find((each) => each.policy === policy)
      const named = { type: 'denial', policy: policy?.name, answeredBy, digest } as const
      const waitMs = decision.retryAfterMs
      note(policy?.name ?? answeredBy, { ...named, source: event, outcome, waitMs })
    },
    ...(settings.shadow && { onShadow }),
    flush,
  }
}

/** Returns whether the next denial gets a record. */
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
