import { type Decision, isPromise } from '@sluice/core'
import type { CountedDecision } from './decision-batch.ts'
import { maxRoutes, other, type Series, type SeriesTable } from './series.ts'

const results = [
  'allowed',
  'denied',
  'shadow_denied',
  'queued',
  'skipped',
  'shed',
  'failed_open',
  'failed_closed',
] as const

/** Result of a request. */
type RequestResult = (typeof results)[number]

const readingMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'QUERY'])
const classes = ['read', 'write', 'none'] as const
const none = classes.indexOf('none')

interface RouteCount {
  readonly label: string
  /** Slots by method class and result; -1 if not known yet. */
  readonly slots: Int32Array
}

/** Counts requests by route, method class and result. */
export class RequestCounts {
  readonly #requests: Series
  readonly #overflow: Series
  readonly #routes = new Map<string | undefined, RouteCount>()
  readonly #others = routeCount(other)
  /** The request counted last: usually the next one has the same slot. */
  #latestRoute: string | undefined
  #latestMethod: string | undefined
  #latestResult: RequestResult | undefined
  #latestSlot = 0

  constructor(table: SeriesTable) {
    this.#requests = table.of('sluice_requests_total')
    this.#overflow = table.of('sluice_series_overflow_total')
  }

  /** Returns a route's label: its pattern, `unmatched`, or `other` if there are too many. */
  labelOf(route: string | undefined): string {
    return (this.#routes.get(route) ?? this.#others).label
  }

  /** Counts a decision. @returns `allowed` if the store let the request pass, as usual */
  decided({ decision, route, method, isQueued }: CountedDecision): 'allowed' | undefined {
    const result = requestResult(decision, isQueued)
    const shadows = decision.shadow?.decisions
    const isAllowed = result === 'allowed'
    if (!isAllowed || shadows === undefined) this.add(route, method, result)
    else if (isPromise(shadows)) {
      void shadows.then((known) => this.add(route, method, shadowResult(known)))
    } else this.add(route, method, shadowResult(shadows))
    const isPlain = isAllowed && decision.source === 'store' && shadows === undefined
    return isPlain ? 'allowed' : undefined
  }

  add(route: string | undefined, method: string | undefined, result: RequestResult): void {
    const isLatest =
      result === this.#latestResult && route === this.#latestRoute && method === this.#latestMethod
    this.#requests.add(isLatest ? this.#latestSlot : this.#slotOf(route, method, result))
  }

  #slotOf(route: string | undefined, method: string | undefined, result: RequestResult): number {
    const count = this.#countOf(route)
    const methodClass = classOf(method)
    const place = methodClass * results.length + results.indexOf(result)
    let slot = count.slots[place] ?? -1
    if (slot === -1) {
      slot = this.#requests.slot(count.label, classes[methodClass] ?? 'none', result)
      count.slots[place] = slot
    }
    // Every request whose route did not fit is reported.
    if (count === this.#others) return slot
    this.#latestRoute = route
    this.#latestMethod = method
    this.#latestResult = result
    this.#latestSlot = slot
    return slot
  }

  #countOf(route: string | undefined): RouteCount {
    const known = this.#routes.get(route)
    if (known) return known
    if (this.#routes.size >= maxRoutes) {
      this.#overflow.add(this.#overflow.slot('route'))
      return this.#others
    }
    const count = routeCount(route ?? 'unmatched')
    this.#routes.set(route, count)
    return count
  }
}

/** Returns the result of a request, from its decision only. */
function requestResult(decision: Decision, isQueued: boolean): RequestResult {
  if (isQueued) return 'queued'
  if (decision.source === 'open') return 'failed_open'
  if (decision.source === 'closed') return 'failed_closed'
  if (decision.source === 'shed') return 'shed'
  return decision.allowed ? 'allowed' : 'denied'
}

function shadowResult(decisions: readonly { readonly allowed: boolean }[]): RequestResult {
  return decisions.some(({ allowed }) => !allowed) ? 'shadow_denied' : 'allowed'
}

function routeCount(label: string): RouteCount {
  return { label, slots: new Int32Array(classes.length * results.length).fill(-1) }
}

function classOf(method: string | undefined): number {
  if (method === undefined) return none
  return readingMethods.has(method) ? 0 : 1
}
