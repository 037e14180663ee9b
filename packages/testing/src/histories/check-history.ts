import type { HistoryLine } from './history.ts'

/** The law of a policy. */
export interface HistoryLaw {
  /** Units in a window. A line may have its own limit. */
  readonly limit: number
  readonly windowMs: number
  /** Units that a rolling window may hold beyond the limit. @default 0 */
  readonly extraUnits?: number
  /** Maximum difference (ms) between the limiter's clock and the history's. @default 1 */
  readonly toleranceMs?: number
}

/** A way in which a line violates the law of its policy. */
export type FindingKind =
  /** One window certainly has more units than the law allows. */
  | 'over-limit'
  /** A refusal, although there was room even if everything possible was admitted. */
  | 'wrongful-refusal'
  /** A refusal after the wait of an earlier refusal, with no admission in between. */
  | 'broken-wait'
  /** An admission before the wait of an earlier refusal was over. */
  | 'overlong-wait'
  /** Numbers of a line that contradict each other, or the admitted units. */
  | 'contradiction'

/** A line that violates the law of its policy. */
export interface Finding {
  readonly kind: FindingKind
  readonly message: string
  readonly line: HistoryLine
}

/** Findings about a history, with totals. */
export interface HistoryReport {
  readonly lines: number
  readonly admittedUnits: number
  readonly refusals: number
  /** Maximum units that are certainly in one window of a key. */
  readonly fullest: number
  /** `undecided` if the history's times are too imprecise to tell. */
  readonly bound: 'kept' | 'violated' | 'undecided'
  readonly findings: readonly Finding[]
}

type Law = Required<HistoryLaw>

/** A line with all times and numbers filled in. */
interface Event {
  readonly line: HistoryLine
  readonly start: number
  readonly end: number
  readonly cost: number
  readonly limit: number
}

/**
 * Checks a history of one or many processes against the laws of its policies. A decision happens at
 * some time between `start` and `end`: a finding holds for every such time.
 * @param laws by policy name
 */
export function checkHistory(
  lines: readonly HistoryLine[],
  laws: Readonly<Record<string, HistoryLaw>>,
): HistoryReport {
  const keys = new Map<string, { law: Law; events: Map<unknown, Event> }>()
  for (const [index, line] of lines.entries()) {
    const given = laws[line.policy]
    if (!given) throw new TypeError(`laws has no policy '${line.policy}': add its limit and window`)
    const law = { extraUnits: 0, toleranceMs: 1, ...given }
    const name = JSON.stringify([line.policy, line.key])
    const known = keys.get(name) ?? { law, events: new Map() }
    keys.set(name, known)
    const { start, end, cost = 1, limit = law.limit, process, id } = line
    const event = { line, start, end: end ?? Number.POSITIVE_INFINITY, cost, limit }
    known.events.set(id === undefined ? index : `${process} ${id}`, event)
  }
  const of = [...keys.values()].map(({ law, events }) => new KeyHistory(law, [...events.values()]))
  const bounds = new Set(of.map((key) => key.bound))
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
  return {
    lines: lines.length,
    admittedUnits: sum(of.map((key) => key.admittedUnits)),
    refusals: sum(of.map((key) => key.refusals)),
    fullest: Math.max(0, ...of.map((key) => key.fullest)),
    bound: (['violated', 'undecided'] as const).find((bound) => bounds.has(bound)) ?? 'kept',
    findings: of.flatMap((key) => key.findings),
  }
}

/** The lines of one key under one policy. */
class KeyHistory {
  readonly findings: Finding[] = []
  readonly admittedUnits: number
  readonly refusals: number
  readonly fullest: number
  readonly bound: HistoryReport['bound']
  readonly #law: Law
  readonly #events: readonly Event[]
  readonly #certain: readonly Event[]
  readonly #possible: readonly Event[]
  /** Resets and refunds. */
  readonly #frees: readonly Event[]
  readonly #resets: readonly Event[]

  constructor(law: Law, events: readonly Event[]) {
    this.#law = law
    this.#events = [...events].sort((a, b) => a.start - b.start)
    const of = (...decisions: readonly HistoryLine['decision'][]) =>
      this.#events.filter(({ line }) => decisions.includes(line.decision))
    this.#certain = of('allowed').filter(({ cost }) => cost > 0)
    this.#possible = of('allowed', 'refunded', 'unknown').filter(({ cost }) => cost > 0)
    this.#frees = of('reset', 'refunded')
    this.#resets = of('reset')
    this.admittedUnits = this.#certain.reduce((sum, { cost }) => sum + cost, 0)
    this.refusals = of('denied').length
    let [fullest, isKept, isViolated] = [0, true, false]
    // Windows whose requests have a limit of at most this one.
    for (const limit of new Set(this.#events.map((event) => event.limit))) {
      const upTo = (some: readonly Event[]) => some.filter((event) => event.limit <= limit)
      const most = limit + law.extraUnits
      const [units, first] = this.#certainlyTogether(upTo(this.#certain))
      if (units > most) {
        isViolated = true
        if (first) this.#find('over-limit', first, `${units} units in one window, of ${most}`)
      }
      isKept &&= possiblyTogether(upTo(this.#possible), law.windowMs + law.toleranceMs) <= most
      fullest = Math.max(fullest, units)
    }
    this.fullest = fullest
    this.bound = isViolated ? 'violated' : isKept ? 'kept' : 'undecided'
    this.#checkNumbers()
    this.#findBrokenWaits()
    this.#findOverlongWaits()
  }

  #find(kind: FindingKind, { line }: Event, message: string): void {
    const { policy, key } = line
    this.findings.push({ kind, line, message: `${policy} of ${JSON.stringify(key)}: ${message}` })
  }

  /** Returns the maximum units that are certainly in one window, and the first of them. */
  #certainlyTogether(admissions: readonly Event[]): [number, Event | undefined] {
    const windowMs = this.#law.windowMs - this.#law.toleranceMs
    const byEnd = [...admissions].sort((a, b) => a.end - b.end)
    const counted = new Set<Event>()
    const passed = new Set<Event>()
    let [units, most, next] = [0, 0, 0]
    let found: Event | undefined
    for (const first of admissions) {
      // A reset that may be in the window frees the units before it.
      const until = this.#resets.reduce(
        (ms, { start, end }) => (end >= first.start ? Math.min(ms, start) : ms),
        first.start + windowMs,
      )
      for (let event = byEnd[next]; event && event.end < until; event = byEnd[next]) {
        next += 1
        if (passed.has(event)) continue
        counted.add(event)
        units += event.cost
      }
      if (units > most) [most, found] = [units, first]
      passed.add(first)
      if (counted.delete(first)) units -= first.cost
    }
    return [most, found]
  }

  #checkNumbers(): void {
    const { windowMs, toleranceMs, extraUnits } = this.#law
    const starts = prefixSums(this.#possible, ({ start }) => start)
    const ends = prefixSums(this.#possible, ({ end }) => end)
    const certainStarts = prefixSums(this.#certain, ({ start }) => start)
    const certainEnds = prefixSums(this.#certain, ({ end }) => end)
    for (const event of this.#events) {
      const { start, end, cost, limit } = event
      const { decision, remaining, retryAfterMs } = event.line
      if (decision !== 'allowed' && decision !== 'denied') continue
      const isAllowed = decision === 'allowed'
      const own = isAllowed ? cost : 0
      // Everything that may count at the decision, including the request itself if it was admitted.
      const possible = starts(end) - ends(start - windowMs - toleranceMs)
      const freed = this.#resets.reduce(
        (ms, free) => (free.start <= end ? Math.max(ms, free.end) : ms),
        Number.NEGATIVE_INFINITY,
      )
      const oldest = Math.max(end - windowMs + toleranceMs, freed)
      // Times within one millisecond say nothing about the order.
      const certain =
        Math.max(0, certainEnds(start - Math.max(toleranceMs, 0.001)) - certainStarts(oldest)) + own
      const taken = `at most ${possible} of ${limit} units were taken`
      if (!isAllowed && cost > 0 && possible + cost <= limit) {
        this.#find('wrongful-refusal', event, `refused, although ${taken}`)
      }
      const [waitMs, left] = [retryAfterMs ?? 0, remaining ?? 0]
      const isForEver = !isAllowed && retryAfterMs === null && cost <= limit && limit > 0
      const hasNoWait = !isAllowed && typeof retryAfterMs === 'number' && !(retryAfterMs > 0)
      const contradictions = [
        isAllowed && cost > limit + extraUnits && `admitted ${cost} units of ${limit}`,
        isAllowed && waitMs > 0 && 'admitted, with a wait',
        hasNoWait && `refused, with a wait of ${waitMs} ms`,
        isForEver && 'refused forever, although it fits the limit',
        (left < 0 || left > limit) && `${left} of ${limit} units remain`,
        !isAllowed && cost > 0 && left >= cost && `refused ${cost} units, although ${left} remain`,
        left > Math.max(0, limit + extraUnits - certain) &&
          `${left} units remain, although ${certain} of ${limit} were taken`,
        remaining !== undefined &&
          left < Math.min(limit - possible, limit) &&
          `${left} units remain, although ${taken}`,
      ]
      for (const message of contradictions) {
        if (message) this.#find('contradiction', event, message)
      }
    }
  }

  #findBrokenWaits(): void {
    const starts = this.#possible.map(({ start }) => start)
    let told: Event[] = []
    let [seen, answeredAt] = [0, Number.NEGATIVE_INFINITY]
    const admissions = new Set(this.#possible)
    for (const event of this.#events) {
      const { start, end, cost, limit, line } = event
      if (admissions.has(event)) {
        told = []
        seen += 1
        answeredAt = Math.max(answeredAt, end)
      }
      if (line.decision !== 'denied' || cost === 0) continue
      const isAlone = (starts[seen] ?? Number.POSITIVE_INFINITY) > end
      const broken = told.find(
        (before) =>
          before.cost >= cost &&
          before.limit <= limit &&
          start >= waitedAt(before, before.end) + this.#law.toleranceMs,
      )
      if (broken && isAlone) {
        this.#find('broken-wait', event, `refused after a wait of ${broken.line.retryAfterMs} ms`)
      }
      if (typeof line.retryAfterMs !== 'number' || start <= answeredAt) continue
      // Of similar refusals, the one whose wait ends first is the most informative.
      const alike = told.findIndex((other) => other.cost === cost && other.limit === limit)
      const other = told[alike]
      if (!other) told.push(event)
      else if (waitedAt(event, end) < waitedAt(other, other.end)) told[alike] = event
    }
  }

  #findOverlongWaits(): void {
    const { toleranceMs } = this.#law
    const denials = this.#events
      .filter(({ line }) => line.decision === 'denied' && line.retryAfterMs)
      .sort((a, b) => a.end - b.end)
    let told: Event[] = []
    let next = 0
    for (const event of this.#certain) {
      for (let denial = denials[next]; denial && denial.end < event.start; denial = denials[next]) {
        told.push(denial)
        next += 1
      }
      told = told.filter((denial) => waitedAt(denial, denial.start) > event.end + toleranceMs)
      const early = told.find(
        (denial) =>
          denial.cost <= event.cost &&
          denial.limit >= event.limit &&
          !this.#frees.some(({ start, end }) => end >= denial.start && start <= event.end),
      )
      if (!early) continue
      this.#find('overlong-wait', event, `admitted before a wait of ${early.line.retryAfterMs} ms`)
      told = told.filter((denial) => denial !== early)
    }
  }
}

function waitedAt({ line }: Event, deniedAt: number): number {
  return deniedAt + (line.retryAfterMs ?? Number.POSITIVE_INFINITY)
}

/** Returns the maximum units that may be in one window. */
function possiblyTogether(admissions: readonly Event[], windowMs: number): number {
  const ends = prefixSums(admissions, ({ end }) => end)
  const starts = prefixSums(admissions, ({ start }) => start)
  return admissions.reduce(
    (most, { start }) => Math.max(most, starts(start) - ends(start - windowMs)),
    0,
  )
}

/** Returns the units of all events up to a time. */
function prefixSums(events: readonly Event[], timeOf: (event: Event) => number) {
  const sorted = [...events].sort((a, b) => timeOf(a) - timeOf(b))
  const sums = [0]
  for (const { cost } of sorted) sums.push((sums.at(-1) ?? 0) + cost)
  return (time: number): number => {
    let [low, high] = [0, sorted.length]
    while (low < high) {
      const middle = (low + high) >> 1
      const event = sorted[middle]
      if (event && timeOf(event) <= time) low = middle + 1
      else high = middle
    }
    return sums[low] ?? 0
  }
}
