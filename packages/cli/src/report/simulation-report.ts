/**
 * The result of a simulation, as `sluice simulate --json` prints it. Times are milliseconds since
 * 1970, spans are milliseconds.
 */
export interface SimulationReport {
  readonly kind: 'sluice-simulation'
  /** Grows with changes that break readers. */
  readonly version: 1
  /** The policy file, as the command line names it. */
  readonly policyFile: string
  /** The behaviour of clients after a refusal: as the log has it, or waiting as instructed. */
  readonly clients: 'recorded' | 'obedient'
  readonly log: LogReport
  readonly totals: Totals
  /** In the order of the policy file. */
  readonly policies: readonly PolicyReport[]
  /** The routes with the most refusals first, at most 200. */
  readonly routes: readonly RouteReport[]
  /** Every hour of the log, the oldest first: hours without a request too. */
  readonly hours: readonly HourReport[]
  /** The clients with the most refusals first, at most 1,000. */
  readonly deniedClients: readonly DeniedClient[]
  readonly rates: RatesReport
  /** Assumptions about what the log could not tell. */
  readonly notes: readonly string[]
}

/** The log that was read: its files, its format and its lines. */
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
  /** Requests that came too late to be put in order; each was decided at the time of its place. */
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
  /** The beginning of the line. */
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
  /** Allowed requests that a policy in shadow would have denied. */
  readonly shadowDenied: number
  /** Identities by the `key` of the policy file. */
  readonly clients: number
  readonly clientsDenied: number
  /** Requests of clients beyond a million, which were decided, and are counted in totals alone. */
  readonly unlistedRequests: number
}

/** The denials of one policy. */
export interface PolicyReport {
  readonly name: string
  readonly algorithm: string
  /** Its limit is of units in a window, of requests at once (`leases`), or of refusals. */
  readonly counts: 'units' | 'leases' | 'strikes'
  /** The declared limit; `null` for none. */
  readonly limit: number | null
  readonly windowMs: number
  /** The calendar of its windows; `null` for none. */
  readonly calendar: { readonly every: string; readonly zone: string } | null
  readonly mode: 'enforce' | 'shadow'
  /** Requests that it was asked about. */
  readonly checked: number
  /** Requests that it denied; in shadow: that it would have denied. */
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
  /** The rule of the policy file, or the pattern of `--route`, that matches; else `(other)`. */
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
  /** The policies that denied; `block`, `onMissingKey` or `maxWaiting` where none was asked. */
  readonly policies: readonly string[]
  readonly firstDenialMs: number
  /** The longest time from a first refusal to the last one before a request passed again. */
  readonly longestDenialMs: number
  /** Time at which it began. */
  readonly longestDenialAtMs: number
}

/** The rates of clients: the most requests of each in any window of a length. */
export interface RatesReport {
  /** 1 s, 10 s, 1 min and 1 h. */
  readonly windowsMs: readonly number[]
  /** For each window the rates, ascending, each with the number of clients that reach it. */
  readonly distribution: readonly (readonly (readonly [rate: number, clients: number])[])[]
  /** The busiest clients by any window, at most 500. */
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
