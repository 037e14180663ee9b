import { notify } from '@sluice/core'

/** Events of jobs, for logs and metrics. They contain no identities and no payloads. Times are milliseconds. */
export type QueueEvent = { readonly queue: string } & (
  | JobEnqueued
  | JobRefused
  | RunStarted
  | RunDone
  | RunRetried
  | JobDead
  | JobExpired
  | JobEnded
)

/** A job was accepted. */
export interface JobEnqueued {
  readonly type: 'enqueued'
  readonly id: string
}

/** There was no room for a job. */
export interface JobRefused {
  readonly type: 'refused'
  readonly bound: 'queue' | 'identity'
}

/** A handler is called. */
export interface RunStarted {
  readonly type: 'started'
  readonly id: string
  readonly attempt: number
  /** Since the job was enqueued. */
  readonly waitMs: number
}

export interface RunDone {
  readonly type: 'done'
  readonly id: string
  readonly attempt: number
  readonly runMs: number
}

/** A run failed, and there will be another. */
export interface RunRetried {
  readonly type: 'retried'
  readonly id: string
  readonly attempt: number
  readonly runMs: number
  readonly delayMs: number
  readonly error: unknown
}

/** The last run failed: the job is a dead letter. */
export interface JobDead {
  readonly type: 'dead'
  readonly id: string
  readonly attempt: number
  readonly runMs: number
  readonly error: unknown
}

/** A job waited longer than it was worth. */
export interface JobExpired {
  readonly type: 'expired'
  readonly id: string
  readonly waitMs: number
}

/** `returned` to the queue by a worker that closes; `stalled`: taken back from one that is gone. */
export interface JobEnded {
  readonly type: 'cancelled' | 'returned' | 'stalled'
  readonly id: string
}

/** Told of what happens. What it throws is reported once as a warning, and changes nothing. */
export type QueueObserver = (event: QueueEvent) => void

/** An event without its queue, which is the same for all of one emitterOf. */
type WithoutQueue<E> = E extends QueueEvent ? Omit<E, 'queue'> : never

export type Emit = (event: WithoutQueue<QueueEvent>) => void

/** Reports the events of one queue. */
export function emitterOf(queue: string, observer: QueueObserver | undefined): Emit {
  return observer ? (event) => notify(observer, { queue, ...event }) : () => undefined
}
