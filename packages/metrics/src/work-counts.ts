import { withDeadline } from '@sluice/core'
import type { InstrumentName } from './instruments.ts'
import type { SeriesTable } from './series.ts'

/**
 * The part that is read of an event of a queue or an outbound, whose packages cannot be imported.
 */
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

/** The longest (ms) that a reader waits for a queue to say how full it is. */
const depthDeadlineMs = 1_000

/** Counts what queues, outbounds and clients tell. */
export class WorkCounts {
  readonly #table: SeriesTable
  readonly #queues = new Map<string, WatchedQueue>()
  readonly #outbounds = new Map<string, WatchedOutbound>()

  constructor(table: SeriesTable) {
    this.#table = table
  }

  watchQueue(queue: WatchedQueue): void {
    this.#queues.set(queue.queue, queue)
    // Prometheus sees an increase of a series only when it has seen the series before.
    this.#table.of('sluice_jobs_total').slot(queue.queue, 'dead')
  }

  watchOutbound(outbound: WatchedOutbound): void {
    this.#outbounds.set(outbound.outbound, outbound)
  }

  note(event: WorkEvent): void {
    if ('queue' in event) this.#noteJob(event)
    else this.#noteCall(event)
  }

  noteWait(reason: string, waitedMs: number): void {
    const waits = this.#table.of('sluice_client_wait_seconds')
    waits.observe(waits.slot(reason), waitedMs / 1_000)
  }

  noteGiveUp(reason: string): void {
    const giveUps = this.#table.of('sluice_client_give_ups_total')
    giveUps.add(giveUps.slot(reason))
  }

  /** Asks the queues and outbounds. A queue that does not answer has no depth. */
  async read(): Promise<void> {
    const [depths, dead, oldest, waiting] = [
      this.#table.of('sluice_queue_depth'),
      this.#table.of('sluice_queue_dead_letters'),
      this.#table.of('sluice_queue_oldest_seconds'),
      this.#table.of('sluice_outbound_waiting'),
    ]
    for (const { outbound, waiting: calls } of this.#outbounds.values()) {
      waiting.set(waiting.slot(outbound), calls)
    }
    const asked = [...this.#queues.values()].map(async (queue) => {
      const found = await depthOf(queue)
      return { name: queue.queue, found }
    })
    const answers = await Promise.all(asked)
    for (const series of [depths, dead, oldest]) series.clear()
    for (const { name, found } of answers) {
      if (!found) continue
      depths.set(depths.slot(name), found.depth)
      dead.set(dead.slot(name), found.dead)
      oldest.set(oldest.slot(name), found.oldestMs / 1_000)
    }
  }

  #noteJob({ type, queue, waitMs, runMs }: Extract<WorkEvent, { queue: string }>): void {
    const jobs = this.#table.of('sluice_jobs_total')
    if (type !== 'started') jobs.add(jobs.slot(queue, type))
    if (waitMs !== undefined && type === 'started')
      this.#time('sluice_job_wait_seconds', queue, waitMs)
    if (runMs !== undefined) this.#time('sluice_job_run_seconds', queue, runMs)
  }

  #noteCall(event: Extract<WorkEvent, { outbound: string }>): void {
    const { type, outbound, waitMs = 0, runMs = 0, forMs = 0 } = event
    if (type === 'call') {
      const calls = this.#table.of('sluice_outbound_calls_total')
      calls.add(calls.slot(outbound, answerClass(event.answer)))
      this.#time('sluice_outbound_wait_seconds', outbound, waitMs)
      this.#time('sluice_outbound_run_seconds', outbound, runMs)
    }
    if (type === 'refused') {
      const refusals = this.#table.of('sluice_outbound_refusals_total')
      refusals.add(refusals.slot(outbound, event.reason ?? 'unknown'))
    }
    if (type === 'paused') {
      const pauses = this.#table.of('sluice_outbound_pause_seconds_total')
      pauses.add(pauses.slot(outbound), forMs / 1_000)
    }
  }

  #time(name: InstrumentName, label: string, ms: number): void {
    const series = this.#table.of(name)
    series.observe(series.slot(label), ms / 1_000)
  }
}

/** A third party may answer with any status: only its class is a label. */
function answerClass(answer: number | string | undefined): string {
  if (typeof answer !== 'number') return answer ?? 'unknown'
  return answer >= 100 && answer <= 599 ? `${Math.floor(answer / 100)}xx` : 'unknown'
}

/** The gauges of a queue; `undefined` when it does not answer in time. */
async function depthOf(queue: WatchedQueue): Promise<Depth | undefined> {
  try {
    return await withDeadline(queue.depth(), depthDeadlineMs, () => undefined)
  } catch {
    // A queue whose broker is away has no depth; its own observers are told why.
    return undefined
  }
}
