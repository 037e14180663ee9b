import type { RedisJobTable } from '../redis/job-table.ts'
import { type MessageTable, sweptAtOnce } from './message-table.ts'
import type { Publisher } from './publisher.ts'

interface SweepOptions {
  readonly table: RedisJobTable
  readonly messages: MessageTable
  readonly publisher: Publisher
  readonly deadlineMs: number
  readonly onError: (error: unknown) => void
}

/** Time (ms) between two sweeps. */
const everyMs = 5_000

/** Number of sweeps after which places and the server's queue are looked at too. */
const thoroughly = 6

/** Age (ms) of a message that may have been lost with its queue. */
const lostAfterMs = 60_000

/**
 * Publishes the messages of jobs that were recorded, and whose process died before RabbitMQ
 * confirmed them. Every process of a queue does so.
 */
export class Sweep {
  readonly #options: SweepOptions
  #timer: NodeJS.Timeout | undefined
  #count = 0
  #isSweeping = false

  constructor(options: SweepOptions) {
    this.#options = options
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.#sweep(), everyMs).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  async #sweep(): Promise<void> {
    if (this.#isSweeping) return
    this.#isSweeping = true
    try {
      const { table, publisher, deadlineMs } = this.#options
      await publisher.ready()
      // The process that recorded a job gives it up after the deadline.
      await this.#publishOverdue(Math.max(10_000, 2 * deadlineMs), false)
      this.#count += 1
      if (this.#count % thoroughly !== 1) return
      await table.sweep()
      if ((await publisher.backlog()) === 0) await this.#publishOverdue(lostAfterMs, true)
    } catch (error) {
      this.#options.onError(error)
    } finally {
      this.#isSweeping = false
    }
  }

  async #publishOverdue(afterMs: number, isEmpty: boolean): Promise<void> {
    const { messages, publisher } = this.#options
    for (;;) {
      const due = await messages.overdue(afterMs, isEmpty)
      const published = due.map(({ dueAt, ...message }) => {
        return publisher.publish(message, { delayMs: dueAt - Date.now() })
      })
      await Promise.all(published)
      if (due.length < sweptAtOnce) return
    }
  }
}
