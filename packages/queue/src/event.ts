import { checkObserverList, invalid, joined, notify } from '@sluice/core'
import type { Broker, Depth } from './broker.ts'

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

/** Receives events. An error of it is reported once as a warning, and changes nothing. */
export type QueueObserver = (event: QueueEvent) => void

/** Options that name who is told of jobs. */
export interface QueueObserverOptions {
  /** Receives the events of jobs on this side. */
  onEvent?: QueueObserver
  /** Objects with `onEvent` or `onQueue`: each is told of everything that it has a method for. @default none */
  observers?: readonly QueueObservers[]
}

/** An observer of queues and workers. What its methods throw is reported once as a warning, and changes nothing. */
export interface QueueObservers {
  onEvent?(event: QueueEvent): void
  /** Called once for each queue and worker that is made, with what can be asked of the queue later. */
  onQueue?(queue: ObservedQueue): void
}

export interface ObservedQueue {
  readonly queue: string
  /** Asks how full the queue is, and how fast it fills and drains. */
  depth(): Promise<Depth>
}

/** An event without its queue, which is the same for all events of one emitter. */
type WithoutQueue<E> = E extends QueueEvent ? Omit<E, 'queue'> : never

export type Emit = (event: WithoutQueue<QueueEvent>) => void

/** @throws SluiceError when an observer has another form */
export function checkObservers({ onEvent, observers }: QueueObserverOptions): void {
  if (onEvent !== undefined && typeof onEvent !== 'function') {
    throw invalid({ option: 'onEvent' }, onEvent, 'a function')
  }
  checkObserverList(observers, ['onEvent', 'onQueue'])
}

/** Shows observers the queue of a broker. Returns what tells them of events there. */
export function emitterOf(broker: Broker, { onEvent, observers = [] }: QueueObserverOptions): Emit {
  const queue = broker.name
  for (const each of observers) {
    notify(each.onQueue?.bind(each), { queue, depth: () => broker.depth() })
  }
  const observer = joined([onEvent, ...observers.map((each) => each.onEvent?.bind(each))])
  return observer ? (event) => notify(observer, { queue, ...event }) : () => undefined
}
