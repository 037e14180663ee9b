import type { Policy } from '@sluice/core'
import type { Check, Outcome } from '@sluice/core/backend'
import { ratesReport } from '../rates/distribution.ts'
import type { Replayed } from '../replay/replay.ts'
import type { HourReport, RouteReport, SimulationReport } from '../report/simulation-report.ts'
import { ClientTable, hourMs } from './client-tally.ts'
import { DenialRuns } from './denial-runs.ts'
import { PolicyTally } from './policy-tally.ts'

/** Maximum number of hours, so that a line with a wrong date does not add millions. */
const maxHours = 24 * 366
const maxRoutes = 200
const maxDeniedClients = 1_000
const otherRoutes = '(other)'

type Totals = { -readonly [field in keyof SimulationReport['totals']]: number }

interface RouteTally {
  requests: number
  denied: number
  readonly denials: DenialRuns
}

/** One request, with everything needed to count its outcomes. */
type Answered = Parameters<PolicyTally['add']>[2]

const none = { outcomes: [] }

export class Simulation {
  readonly #totals: Totals = {
    ...{ requests: 0, allowed: 0, denied: 0, delayed: 0, skipped: 0, heldBack: 0 },
    ...{ shadowDenied: 0, clients: 0, clientsDenied: 0, unlistedRequests: 0 },
  }
  readonly #policies: ReadonlyMap<string, PolicyTally>
  readonly #clients = new ClientTable()
  readonly #routes = new Map<string, RouteTally>()
  readonly #hours = new Map<number, { requests: number; denied: number; clientsDenied: number }>()

  constructor(policies: readonly Policy[]) {
    this.#policies = new Map(policies.map((policy) => [policy.name, new PolicyTally(policy)]))
  }

  add(replayed: Replayed): void {
    const { request, result, decision } = replayed
    const isDenied = result === 'denied'
    this.#totals.requests += 1
    this.#totals[result] += 1
    if (decision && decision.delayMs > 0 && !isDenied) this.#totals.delayed += 1
    const denying = this.#addPolicies(replayed)
    const startOfHour = request.startMs - (((request.startMs % hourMs) + hourMs) % hourMs)
    const hour = this.#hourAt(startOfHour)
    const label = request.rule ?? request.route ?? otherRoutes
    const route = this.#routeAt(label)
    hour.requests += 1
    route.requests += 1
    if (isDenied) {
      hour.denied += 1
      route.denied += 1
      route.denials.deny(replayed.client, request.startMs)
    } else if (result === 'allowed' || result === 'skipped') route.denials.allow(replayed.client)
    const client = this.#clients.request(replayed.client, request.startMs)
    if (client === undefined) this.#totals.unlistedRequests += 1
    else if (isDenied) {
      if (this.#clients.deny(client, request.startMs, denying)) hour.clientsDenied += 1
    } else if (result === 'allowed' || result === 'skipped') this.#clients.allow(client)
  }

  /** @param about the fields filled in by the caller */
  report(
    about: Pick<SimulationReport, 'policyFile' | 'clients' | 'log' | 'notes'>,
  ): SimulationReport {
    this.#totals.clients = this.#clients.size
    this.#totals.clientsDenied = this.#clients.deniedSize
    return {
      kind: 'sluice-simulation',
      version: 1,
      ...about,
      totals: this.#totals,
      policies: [...this.#policies.values()].map(({ report }) => report),
      routes: this.#routeReports(),
      hours: this.#hourReports(),
      deniedClients: this.#clients.mostDenied(maxDeniedClients),
      rates: ratesReport(this.#clients),
    }
  }

  /** @returns the names of the policies that denied a request, or of another cause */
  #addPolicies({
    request,
    result,
    decision,
    checks,
    shadow,
    refusedBy,
  }: Replayed): readonly string[] {
    const at = { timeMs: request.startMs, isAllowed: result === 'allowed' }
    if (shadow) this.#addOutcomes(shadow.outcomes, shadow.checks, at)
    if (shadow?.outcomes.some(({ allowed }) => !allowed)) this.#totals.shadowDenied += 1
    const { outcomes } = decision ?? none
    this.#addOutcomes(outcomes, checks, at)
    if (result !== 'denied') return none.outcomes
    const denying = outcomes.flatMap(({ allowed, policy }) => (allowed ? [] : [policy.name]))
    return refusedBy === undefined ? denying : [refusedBy, ...denying]
  }

  #addOutcomes(outcomes: readonly Outcome[], checks: readonly Check[], at: Answered): void {
    // A plain loop: this runs for each line of a log.
    for (let index = 0; index < outcomes.length; index += 1) {
      const outcome = outcomes[index]
      if (outcome) this.#policies.get(outcome.policy.name)?.add(outcome, checks[index], at)
    }
  }

  #hourAt(startMs: number): { requests: number; denied: number; clientsDenied: number } {
    const known = this.#hours.get(startMs)
    if (known) return known
    const hour = { requests: 0, denied: 0, clientsDenied: 0 }
    this.#hours.set(startMs, hour)
    return hour
  }

  #routeAt(label: string): RouteTally {
    const known = this.#routes.get(label)
    if (known) return known
    const route = { requests: 0, denied: 0, denials: new DenialRuns() }
    this.#routes.set(label, route)
    return route
  }

  #routeReports(): readonly RouteReport[] {
    return [...this.#routes]
      .map(([route, { requests, denied, denials }]) => ({
        ...{ route, requests, denied },
        firstDenialMs: denials.firstMs ?? null,
        longestDenialMs: denials.longestMs,
      }))
      .sort((one, other) => other.denied - one.denied || other.requests - one.requests)
      .slice(0, maxRoutes)
  }

  #hourReports(): readonly HourReport[] {
    const starts = [...this.#hours.keys()].sort((one, other) => one - other)
    const first = starts[0] ?? 0
    const count = starts.length === 0 ? 0 : ((starts.at(-1) ?? first) - first) / hourMs + 1
    if (count > maxHours) return starts.map((startMs) => ({ startMs, ...this.#hourAt(startMs) }))
    return Array.from({ length: count }, (_, index) => {
      const startMs = first + index * hourMs
      return { startMs, ...this.#hourAt(startMs) }
    })
  }
}
