/**
 * The result of a simulation, as `sluice simulate --json` prints it. Times are milliseconds since
 * 1970, spans are milliseconds.
 */
export interface SimulationReport {
  readonly kind: 'sluice-simulation'
  /** Incremented for breaking changes. */
  readonly version: 1
  /** The policy file, as named on the command line. */
  readonly policyFile: string
  /** The behaviour of clients after a refusal: as in the log, or waiting as instructed. */
  readonly clients: 'recorded' | 'obedient'
  readonly log: LogReport
  readonly totals: Totals
  /** In policy file order. */
  readonly policies: readonly PolicyReport[]
  /** Routes with the most refusals first, at most 200. */
  readonly routes: readonly RouteReport[]
  /** Every hour of the log, oldest first, including hours without requests. */
  readonly hours: readonly HourReport[]
  /** Clients with the most refusals first, at most 1,000. */
  readonly deniedClients: readonly DeniedClient[]
  readonly rates: RatesReport
  /** Assumptions about values missing from the log. */
  readonly notes: readonly string[]
}

/** The log: its files, format and lines. */
export interface LogReport {
  readonly files: readonly string[]
  readonly format: string
  readonly lines: number
  /** Lines that are requests. */
  readonly requests: number
  readonly unreadable: {
    readonly lines: number
    /** The first few. */
    readonly examples: readonly UnreadableLine[]
  }
  /** Requests that came too late to be sorted; each was decided at the time of its place. */
  readonly late: number
  /** Time of the first request; 0 without requests. */
  readonly fromMs: number
  readonly toMs: number
}

/** A line that no format could read, and the reason. */
export interface UnreadableLine {
  readonly file: string
  /** From 1. */
  readonly line: number
  /** The start of the line. */
  readonly text: string
  readonly reason: string
}

/** Sums over the whole log. */
export interface Totals {
  readonly requests: number
  readonly allowed: number
  readonly denied: number
  /** Allowed requests that a queue would have held. */
  readonly delayed: number
  /** Requests that no policy counts. */
  readonly skipped: number
  /** Requests that obedient clients did not send, since they were waiting. */
  readonly heldBack: number
  /** Allowed requests that a shadow policy would have denied. */
  readonly shadowDenied: number
  /** Identities by the policy file's `key`. */
  readonly clients: number
  readonly clientsDenied: number
  /** Requests of clients beyond a million, which were decided but are counted only in totals. */
  readonly unlistedRequests: number
}

/** The denials of one policy. */
export interface PolicyReport {
  readonly name: string
  readonly algorithm: string
  /** The kind of limit: units in a window, concurrent requests (`leases`), or refusals. */
  readonly counts: 'units' | 'leases' | 'strikes'
  /** The declared limit; `null` for none. */
  readonly limit: number | null
  readonly windowMs: number
  /** The calendar of its windows; `null` for none. */
  readonly calendar: { readonly every: string; readonly zone: string } | null
  readonly mode: 'enforce' | 'shadow'
  /** Requests that it checked. */
  readonly checked: number
  /** Requests that it denied, or in shadow mode would have denied. */
  readonly denied: number
  /** Identities by its own key. */
  readonly identitiesDenied: number
  /** Allowed requests that left over 90% of its limit used. */
  readonly nearMisses: number
  readonly firstDenialMs: number | null
  /** The longest time in which it denied every request of one identity. */
  readonly longestDenialMs: number
}

/** The denials of one route. */
export interface RouteReport {
  /** The matching rule of the policy file or pattern of `--route`; otherwise `(other)`. */
  readonly route: string
  readonly requests: number
  readonly denied: number
  readonly firstDenialMs: number | null
  /** The longest time in which every request of one client for the route was refused. */
  readonly longestDenialMs: number
}

/** Requests and denials of an hour of the log. */
export interface HourReport {
  readonly startMs: number
  readonly requests: number
  readonly denied: number
  /** Clients that were refused in this hour. */
  readonly clientsDenied: number
}

/** A client that was denied, and how often. */
export interface DeniedClient {
  readonly client: string
  readonly requests: number
  readonly denied: number
  /** The policies that denied; `block`, `onMissingKey` or `maxWaiting` if none was checked. */
  readonly policies: readonly string[]
  readonly firstDenialMs: number
  /** The longest time from a first refusal to the last one before a request passed again. */
  readonly longestDenialMs: number
  /** Time at which it started. */
  readonly longestDenialAtMs: number
}

/** The rates of clients: the maximum requests of each in any window of a length. */
export interface RatesReport {
  /** 1 s, 10 s, 1 min and 1 h. */
  readonly windowsMs: readonly number[]
  /** The rates per window, ascending, each with the number of clients that reach it. */
  readonly distribution: readonly (readonly (readonly [rate: number, clients: number])[])[]
  /** The busiest clients in any window, at most 500. */
  readonly clients: readonly BusyClient[]
}

/** A client with many requests, and its denials. */
export interface BusyClient {
  readonly client: string
  readonly requests: number
  readonly denied: number
  /** In the order of the windows. */
  readonly rates: readonly number[]
}
