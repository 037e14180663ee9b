/** Why and how long a call waits. */
export interface WaitEvent {
  /**
   * `told`: the server refused this call and said when to come back. `backoff`: a try failed and nothing was told.
   * `held`: an answer to another call said so, others wait in front, or the pace is slowed down.
   */
  readonly reason: 'told' | 'backoff' | 'held'
  /** How long, in milliseconds from now, jitter included. A call that is held may have to wait longer. */
  readonly waitMs: number
  readonly method: string
  readonly url: string
  /** Requests that this call has sent so far. */
  readonly tries: number
  /** Names of the policies that are waited for, with `;pk=…` where they have partitions; empty where the server named none. */
  readonly policies: readonly string[]
  /** The last answer to this call, whose body must not be read: it may still be handed out. */
  readonly response: Response | undefined
}

/** A call that could have been sent again, and was not. */
export interface GiveUpEvent {
  /**
   * `tries`: `retries` is used up. `wait`: the wait is longer than `maxWaitMs`, or than what `maxTotalWaitMs` leaves.
   * `unsafe`: the method may not be repeated, or the body cannot be sent again.
   */
  readonly reason: 'tries' | 'wait' | 'unsafe'
  /** The wait that was too long, in milliseconds. */
  readonly waitMs: number | undefined
  readonly method: string
  readonly url: string
  readonly tries: number
  readonly response: Response | undefined
}
