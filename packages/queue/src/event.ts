import { joined, notify, type Option, type OptionsOf, observersOption } from '@sluice/core'
import type { Broker, Depth } from './broker.ts'

/**
 * Events of jobs, for logs and metrics. They contain no identities and no payloads. Times are
 * milliseconds.
 */
export type QueueEvent = { readonly queue: string } /** A job was accepted. */ & (
  | { readonly type: 'enqueued'; readonly id: string }
  /** A job was refused because the queue was full. */
  | { readonly type: 'refused'; readonly bound: 'queue' | 'identity' }
  /** A job expired before a run began. */
  | { readonly type: 'expired'; readonly id: string; readonly waitMs: number }
  /** `returned`: given back by a worker that closes; `stalled`: taken back from a dead worker. */
  | { readonly type: 'cancelled' | 'returned' | 'stalled'; readonly id: string }
  | RunEvent
)

/** A run of a job begins or has ended. */
export type RunEvent = {
  readonly id: string
  readonly attempt: number
} /** `waitMs`: time since the job was enqueued. */ & (
  | { readonly type: 'started'; readonly waitMs: number }
  | { readonly type: 'done'; readonly runMs: number }
  /** The run failed and will be retried. */
  | {
      readonly type: 'retried'
      readonly runMs: number
      readonly delayMs: number
      readonly error: unknown
    }
  /** The last run failed: the job is a dead letter. */
  | { readonly type: 'dead'; readonly runMs: number; readonly error: unknown }
)

/** Options that name observers of jobs. */
export class QueueObserverTable {
  /** An object with `onEvent` or `onQueue`, or a list of such objects. @default none */
  observers?: Option<QueueObservers | readonly QueueObservers[], readonly QueueObservers[]> =
    observersOption<QueueObservers>(['onEvent', 'onQueue'])
}

export interface QueueObserverOptions extends OptionsOf<QueueObserverTable> {}

/**
 * An observer of queues and workers. An error in its methods is reported once as a warning, and
 * changes nothing.
 */
export interface QueueObservers {
  /** Called for the job events of this queue or worker. */
  onEvent?(event: QueueEvent): void
  /** Called once for each new queue and worker, with functions that read the queue's gauges. */
  onQueue?(queue: ObservedQueue): void
}

/** State of a queue, for observers. */
export interface ObservedQueue {
  readonly queue: string
  /** Reads the depth of the queue, and the rates at which it fills and drains. */
  depth(): Promise<Depth>
}

/** An event without its queue, which is the same for all events of one emitter. */
type WithoutQueue<E> = E extends QueueEvent ? Omit<E, 'queue'> : never

export type Emit = (event: WithoutQueue<QueueEvent>) => void

/** Announces a broker's queue to observers. Returns the function that sends them events. */
export function emitterOf(broker: Broker, observers: readonly QueueObservers[]): Emit {
  const queue = broker.name
  for (const each of observers) {
    notify(each.onQueue?.bind(each), { queue, depth: () => broker.depth() })
  }
  const observer = joined(observers.map((each) => each.onEvent?.bind(each)))
  return observer ? (event) => notify(observer, { queue, ...event }) : () => undefined
}
