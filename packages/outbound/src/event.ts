/** An event of calls to a third party, for an audit trail. Times are milliseconds. */
export type OutboundEvent = {
  readonly outbound: string
  readonly by: string
} & (
  | {
      /** A call was made and has ended. */
      readonly type: 'call'
      /** The `label` of the call; for `fetch` the method and the URL without its query. */
      readonly label: string
      readonly cost: number
      /** Milliseconds since 1970. */
      readonly startedAt: number
      readonly waitMs: number
      readonly runMs: number
      /** The status of an answer, or `ok`, `failed`, or `timeout` if the call took too long. */
      readonly answer: number | 'ok' | 'failed' | 'timeout'
    }
  | {
      /** A call was not made. */
      readonly type: 'refused'
      readonly label: string
      readonly cost: number
      readonly waitMs: number
      /** Too many waiting calls, too long a wait, an aborted signal, or `close()`. */
      readonly reason: RefusalReason
    }
  /** The third party asked for a pause: no process of the fleet makes calls. */
  | { readonly type: 'paused'; readonly forMs: number; readonly status: number }
  /**
   * The store is new, was unavailable, or has lost data. This process makes no calls for a while,
   * since the third party may count calls that the store does not know.
   */
  | { readonly type: 'recovering'; readonly forMs: number }
)

/** Reason for which a call was not made. */
export type RefusalReason = 'full' | 'timeout' | 'aborted' | 'closed'

/**
 * An observer of outbounds. An error in its methods is reported once as a warning, and changes
 * nothing.
 */
export interface OutboundObservers {
  /** Called for every call, and for every call that was not made. */
  onEvent?(event: OutboundEvent): void
  /** Called once when an outbound is made, with functions that read its gauges. */
  onOutbound?(outbound: ObservedOutbound): void
}

/** State of an outbound, for observers. */
export interface ObservedOutbound {
  readonly outbound: string
  /** Calls that are waiting in this process. */
  readonly waiting: number
}

/** An event without the caller, which is the same for all events of an outbound. */
type WithoutSource<E> = E extends OutboundEvent ? Omit<E, 'outbound' | 'by'> : never

export type EmitOutbound = (event: WithoutSource<OutboundEvent>) => void
