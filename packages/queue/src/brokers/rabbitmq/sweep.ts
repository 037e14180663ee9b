import type { RedisJobTable } from '../redis/job-table.ts'
import { type RunScript, texts } from '../redis/scripts.ts'
import type { Publisher, ScriptName } from './publisher.ts'

interface SweepOptions {
  readonly table: RedisJobTable
  readonly script: RunScript<ScriptName>
  readonly publisher: Publisher
  readonly deadlineMs: number
}

/** Time (ms) between two sweeps. */
export const sweepMs = 5_000

/** Number of sweeps after which places and the server's queue are checked too. */
const thoroughly = 6

/** Age (ms) of a message that may have been lost with its queue. */
const lostAfterMs = 60_000

/** Maximum number of messages that a sweep publishes in one step. */
const sweptAtOnce = 100

/**
 * Creates a function that publishes the messages of recorded jobs whose process died before
 * RabbitMQ confirmed them. Every process of a queue runs it.
 */
export function sweepOf(options: SweepOptions): () => Promise<void> {
  const { table, script, publisher, deadlineMs } = options
  let count = 0

  /** @param isEmpty true if RabbitMQ has no message: then waiting jobs have lost theirs */
  async function publishOverdue(afterMs: number, isEmpty: boolean): Promise<void> {
    for (;;) {
      const args = { before: Date.now() - afterMs, count: sweptAtOnce, isEmpty }
      const found = texts(await script('rabbitmq/overdue-messages', args))
      const published: Promise<void>[] = []
      for (let i = 0; i + 2 < found.length; i += 3) {
        const [id = '', number, dueAt] = found.slice(i, i + 3)
        const delayMs = Number(dueAt) - Date.now()
        published.push(publisher.publish({ id, number: Number(number) }, { delayMs }))
      }
      await Promise.all(published)
      if (published.length < sweptAtOnce) return
    }
  }

  return async () => {
    await publisher.ready()
    // The process that recorded a job abandons it after the deadline.
    await publishOverdue(Math.max(10_000, 2 * deadlineMs), false)
    count += 1
    if (count % thoroughly !== 1) return
    await table.sweep()
    if ((await publisher.backlog()) === 0) await publishOverdue(lostAfterMs, true)
  }
}
