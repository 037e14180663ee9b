import { withDeadline } from '@sluice/core'
import type { SeriesTable } from './series.ts'

/** The part that is read of a queue's or outbound's event; their packages cannot be imported. */
export type WorkEvent = { readonly type: string } & (
  | { readonly queue: string; readonly waitMs?: number; readonly runMs?: number }
  | {
      readonly outbound: string
      readonly waitMs?: number
      readonly runMs?: number
      readonly answer?: number | string
      readonly reason?: string
      readonly forMs?: number
    }
)

interface Depth {
  readonly depth: number
  readonly dead: number
  readonly oldestMs: number
}

/** Gauges of a queue. */
export interface WatchedQueue {
  readonly queue: string
  depth(): Promise<Depth>
}

/** Gauges of an outbound. */
export interface WatchedOutbound {
  readonly outbound: string
  readonly waiting: number
}

/** Maximum time (ms) to wait for the depth of a queue. */
const depthDeadlineMs = 1_000

/** Counts the events of queues and outbounds. */
export class WorkCounts {
  readonly #table: SeriesTable
  readonly #queues = new Map<string, WatchedQueue>()
  readonly #outbounds = new Map<string, WatchedOutbound>()

  constructor(table: SeriesTable) {
    this.#table = table
  }

  watchQueue(queue: WatchedQueue): void {
    this.#queues.set(queue.queue, queue)
    // Prometheus sees an increase only if it has seen the series before.
    this.#table.add('sluice_jobs_total', 0, queue.queue, 'dead')
  }

  watchOutbound(outbound: WatchedOutbound): void {
    this.#outbounds.set(outbound.outbound, outbound)
  }

  note(event: WorkEvent): void {
    if ('queue' in event) this.#noteJob(event)
    else this.#noteCall(event)
  }

  /** Reads the queues and outbounds. A queue that does not answer has no depth. */
  async read(): Promise<void> {
    const table = this.#table
    for (const { outbound, waiting } of this.#outbounds.values()) {
      table.set('sluice_outbound_waiting', waiting, outbound)
    }
    const queues = [...this.#queues.values()]
    const depths = await Promise.all(queues.map(depthOf))
    table.clear('sluice_queue_depth', 'sluice_queue_dead_letters', 'sluice_queue_oldest_seconds')
    for (const [index, { queue: name }] of queues.entries()) {
      const found = depths[index]
      if (!found) continue
      table.set('sluice_queue_depth', found.depth, name)
      table.set('sluice_queue_dead_letters', found.dead, name)
      table.set('sluice_queue_oldest_seconds', found.oldestMs / 1_000, name)
    }
  }

  #noteJob({ type, queue, waitMs, runMs }: Extract<WorkEvent, { queue: string }>): void {
    const table = this.#table
    if (type !== 'started') table.add('sluice_jobs_total', 1, queue, type)
    else if (waitMs !== undefined) table.observe('sluice_job_wait_seconds', waitMs / 1_000, queue)
    if (runMs !== undefined) table.observe('sluice_job_run_seconds', runMs / 1_000, queue)
  }

  #noteCall(event: Extract<WorkEvent, { outbound: string }>): void {
    const { type, outbound, waitMs = 0, runMs = 0, forMs = 0 } = event
    const table = this.#table
    if (type === 'call') {
      table.add('sluice_outbound_calls_total', 1, outbound, answerClass(event.answer))
      table.observe('sluice_outbound_wait_seconds', waitMs / 1_000, outbound)
      table.observe('sluice_outbound_run_seconds', runMs / 1_000, outbound)
    } else if (type === 'refused') {
      table.add('sluice_outbound_refusals_total', 1, outbound, event.reason ?? 'unknown')
    } else if (type === 'paused') {
      table.add('sluice_outbound_pause_seconds_total', forMs / 1_000, outbound)
    }
  }
}

/** A third party may answer with any status: only the class is a label. */
function answerClass(answer: number | string | undefined): string {
  if (typeof answer !== 'number') return answer ?? 'unknown'
  return answer >= 100 && answer <= 599 ? `${Math.floor(answer / 100)}xx` : 'unknown'
}

/** Reads a queue's gauges; `undefined` if it does not answer in time. */
async function depthOf(queue: WatchedQueue): Promise<Depth | undefined> {
  try {
    return await withDeadline(queue.depth(), depthDeadlineMs, () => undefined)
  } catch {
    // A queue whose broker is unavailable has no depth; its own observers learn why.
    return undefined
  }
}
