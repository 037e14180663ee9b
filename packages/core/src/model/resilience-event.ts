/** `closed`: the store is called. `open`: it is not. `half-open`: one request probes it. */
export type BreakerState = 'closed' | 'open' | 'half-open'

/** An event between a limiter and a store that is slow, gone, or back. Times are milliseconds. */
export type ResilienceEvent =
  | BreakerEvent
  | DeadlineMissedEvent
  | FallbackEnteredEvent
  | FallbackLeftEvent
  | LateReplyEvent
  | ReconciledEvent
  | ClockSkewEvent

/** The circuit breaker of a store changed its state. */
export interface BreakerEvent {
  readonly type: 'breaker'
  readonly state: BreakerState
  /** Until the next probe, while it is open; else 0. */
  readonly retryInMs: number
}

/** Checks whose deadline passed before the store answered; the failure mode answered instead. */
export interface DeadlineMissedEvent {
  readonly type: 'deadline-missed'
  readonly checks: number
}

/** The store is no longer called: failure modes decide. */
export interface FallbackEnteredEvent {
  readonly type: 'fallback-entered'
}

/** All traffic is back at the store. */
export interface FallbackLeftEvent {
  readonly type: 'fallback-left'
  readonly durationMs: number
  /** Decisions made without the store in the meantime. */
  readonly decisions: number
}

/** An answer after its deadline. Its units are given back unless the request has passed. */
export interface LateReplyEvent {
  readonly type: 'late-reply'
  readonly charge: 'kept' | 'refunded'
}

/** Units admitted without the store were reported to it. */
export interface ReconciledEvent {
  readonly type: 'reconciled'
  readonly keys: number
  readonly units: number
}

/** The clocks of this process and the store differ too much: above 0 if the store is ahead. */
export interface ClockSkewEvent {
  readonly type: 'clock-skew'
  readonly skewMs: number
}
