import type { TakenJob } from '../job-table.ts'
import { parsed, readJob } from '../redis/job-fields.ts'
import { type RunScript, type SharedScript, texts } from '../redis/scripts.ts'

type OwnScript = 'published' | 'take' | 'overdue-messages'

export type ScriptName = SharedScript | `rabbitmq/${OwnScript}`

/** A message of a job. Only the newest number of a job counts. */
export interface Message {
  readonly id: string
  readonly number: number
}

/** A message stands for a job to run, for one that is due later, or for nothing any more. */
export type Taken =
  /** `wasRunning`: another run had the job, and its worker was lost. */
  | { readonly outcome: 'run'; readonly job: TakenJob; readonly wasRunning: boolean }
  | { readonly outcome: 'early'; readonly next: Message; readonly delayMs: number }
  | { readonly outcome: 'stale' }

/** A message that is to be published. */
export interface DueMessage extends Message {
  readonly dueAt: number
}

/** Most messages that a sweep publishes in one step. */
export const sweptAtOnce = 100

/** The messages of a queue, as Redis has them. RabbitMQ holds nothing but the ids of jobs. */
export class MessageTable {
  readonly #run: RunScript<ScriptName>

  constructor(run: RunScript<ScriptName>) {
    this.#run = run
  }

  /** Takes the job of a message for a run. */
  async take({ id, number }: Message, token: string): Promise<Taken> {
    const reply = await this.#run('rabbitmq/take', { job: { id }, number, token })
    const [outcome, first = '', ...rest] = texts(reply)
    const [attempts = 0, interrupted = 0, began, stop, was] = rest.map(Number)
    if (outcome === 'early') {
      return { outcome, next: { id, number: Number(first) }, delayMs: attempts }
    }
    if (outcome !== 'run') return { outcome: 'stale' }
    const job = {
      ...{ job: readJob(id, parsed(first)), token, attempts, interrupted },
      ...{ hasBegun: began === 1, isToStop: stop === 1 },
    }
    return { outcome, job, wasRunning: was === 1 }
  }

  /** Notes that the server has confirmed a message. */
  async published({ id, number }: Message): Promise<void> {
    await this.#run('rabbitmq/published', { message: `${id}:${number}` })
  }

  /**
   * Finds messages that were not confirmed for `afterMs` ms, with new numbers.
   * @param isEmpty true if RabbitMQ has no message: then jobs that wait have lost theirs
   */
  async overdue(afterMs: number, isEmpty: boolean): Promise<readonly DueMessage[]> {
    const args = { before: Date.now() - afterMs, count: sweptAtOnce, isEmpty }
    const items = texts(await this.#run('rabbitmq/overdue-messages', args))
    const found: DueMessage[] = []
    for (let i = 0; i + 2 < items.length; i += 3) {
      const [id = '', number, dueAt] = items.slice(i, i + 3)
      found.push({ id, number: Number(number), dueAt: Number(dueAt) })
    }
    return found
  }
}
