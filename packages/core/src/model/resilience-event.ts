/** `closed`: the store is called. `open`: it is not. `half-open`: one request probes it. */
export type BreakerState = 'closed' | 'open' | 'half-open'

/** An event between a limiter and a store that is slow, gone, or back. Times are milliseconds. */
export type ResilienceEvent =
  /** The circuit breaker changed its state. While it is open, `retryInMs` is left until a probe. */
  | { readonly type: 'breaker'; readonly state: BreakerState; readonly retryInMs: number }
  /** The deadline of checks passed before the store answered; the failure mode answered instead. */
  | { readonly type: 'deadline-missed'; readonly checks: number }
  /** The store is no longer called: failure modes decide. */
  | { readonly type: 'fallback-entered' }
  /** All traffic is back at the store. `decisions` were made without it in the meantime. */
  | { readonly type: 'fallback-left'; readonly durationMs: number; readonly decisions: number }
  /** An answer after its deadline. Its units are given back unless the request has passed. */
  | { readonly type: 'late-reply'; readonly charge: 'kept' | 'refunded' }
  /** Units admitted without the store were reported to it. */
  | { readonly type: 'reconciled'; readonly keys: number; readonly units: number }
  /** This process's and the store's clock differ too much: above 0 if the store is ahead. */
  | { readonly type: 'clock-skew'; readonly skewMs: number }
