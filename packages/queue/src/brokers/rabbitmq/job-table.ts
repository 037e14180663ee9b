import type { ControlCall } from '@sluice/core'
import type { Settlement } from '../../broker.ts'
import type { JobStatus } from '../../job.ts'
import {
  flagMs,
  type KeptSet,
  QueueRecords,
  type WaitingEnd,
  waitingEndOf,
} from '../redis/queue-records.ts'
import {
  type ScriptArgument,
  type SharedScript,
  scriptText,
  texts,
} from '../redis/queue-scripts.ts'
import {
  isJobId,
  placeOf,
  readJob,
  type StoredJob,
  statusOf,
  writeJob,
} from '../redis/stored-job.ts'
import type { RabbitmqSetup } from './options.ts'
import type { Delivery } from './publisher.ts'

type OwnScript = 'end' | 'overdue-deliveries' | 'put-back' | 'read' | 'requeue' | 'take' | 'watch'

/** A job that a worker has taken. */
export interface TakenJob {
  readonly job: StoredJob
  /** Runs that have ended. */
  readonly attempts: number
  /** Runs that began and never ended. */
  readonly interrupted: number
  readonly hasBegun: boolean
  readonly isToStop: boolean
  /** True if another run had the job: its worker was lost. */
  readonly wasRunning: boolean
}

/** A message stands for a job to run, for one that is due later, or for nothing any more. */
export type Taken =
  | ({ readonly outcome: 'run' } & TakenJob)
  | { readonly outcome: 'early'; readonly next: Delivery; readonly delayMs: number }
  | { readonly outcome: 'stale' }

/** A job as it is read, and how it is. */
export interface FoundJob {
  readonly job: StoredJob
  readonly status: JobStatus
  readonly hasBegun: boolean
}

/** A delivery that is to be published. */
export interface DueDelivery extends Delivery {
  readonly dueAt: number
}

/** Most deliveries that a sweep publishes in one step. */
export const sweptAtOnce = 100

/** The jobs of a queue in Redis. RabbitMQ holds nothing but their ids. */
export class JobTable {
  readonly records: QueueRecords
  readonly #setup: RabbitmqSetup
  readonly #texts = new Map<string, string>()

  constructor(setup: RabbitmqSetup) {
    this.#setup = setup
    this.records = new QueueRecords({
      bounds: setup,
      toKey: (name) => this.#toKey(name),
      run: (...call) => this.#run(...call),
      countActive: 'SCARD',
    })
  }

  /** The text of a job, for its record. */
  textOf(job: StoredJob): string {
    return JSON.stringify(writeJob(job))
  }

  async take({ id, number }: Delivery, token: string): Promise<Taken> {
    const keys = [this.#toKey(id), this.#toKey('active'), this.#unpublished]
    const reply = await this.#own(
      'take',
      [...keys, this.records.flagKey(id)],
      [id, number, token, Date.now()],
    )
    const [outcome, first = '', ...rest] = texts(reply)
    const [attempts = 0, interrupted = 0, began, stop, was] = rest.map(Number)
    if (outcome === 'early') {
      return { outcome, next: { id, number: Number(first) }, delayMs: attempts }
    }
    if (outcome !== 'run') return { outcome: 'stale' }
    return {
      ...{ outcome, attempts, interrupted },
      job: readJob({ id, data: parsed(first) }),
      ...{ hasBegun: began === 1, isToStop: stop === 1, wasRunning: was === 1 },
    }
  }

  /** Notes that the server has confirmed a message. */
  async published({ id, number }: Delivery): Promise<void> {
    await this.#setup.runScript(
      "return redis.call('ZREM', KEYS[1], ARGV[1])",
      [this.#unpublished],
      [`${id}:${number}`],
    )
  }

  /** Ends a job by the run that has it. Resolves to false if no run of this token has it. */
  async end(job: StoredJob, token: string, settlement: Settlement): Promise<boolean> {
    const isDead = settlement.outcome === 'dead'
    const { onSettled: _, ...ending } = settlement
    const reply = await this.#end(job, {
      ...{ how: 'run', token, set: isDead ? 'failed' : 'completed' },
      text: isDead ? settlement.error : JSON.stringify(ending),
    })
    return reply === 'ended'
  }

  /** Ends a job if it waits. @param how `withdrawn`: as if it had never been */
  async endWaiting(
    job: StoredJob,
    how: 'cancelled' | 'expired' | 'withdrawn',
    control?: ControlCall,
  ): Promise<WaitingEnd> {
    const text = JSON.stringify({ outcome: how })
    return this.#end(job, { how, token: '', set: 'completed', text }, control)
  }

  /** Ends a job that expired before a run began. Resolves to its status before. */
  async endOverdue(id: string): Promise<JobStatus | undefined> {
    const found = await this.find(id)
    if (!found || (await this.endWaiting(found.job, 'expired')) !== 'ended') return undefined
    return found.status
  }

  /**
   * Puts a job back that a run has. Resolves to the delivery to publish, or to the state of the
   * run: `same` if its message must be delivered again, `lost` if the run does not have the job.
   * @param uncounts true if the run began, and does not count
   */
  async putBack(
    { id }: StoredJob,
    token: string,
    back: { settlement: Settlement; uncounts: boolean },
  ): Promise<Delivery | 'same' | 'lost'> {
    const { settlement, uncounts } = back
    const delayMs = 'delayMs' in settlement ? settlement.delayMs : 0
    const error = 'error' in settlement ? settlement.error : ''
    const nowMs = Date.now()
    const reply = await this.#own(
      'put-back',
      [this.#toKey(id), this.#toKey('active'), this.#unpublished],
      [
        ...[id, token, nowMs, settlement.outcome, Math.ceil(nowMs + delayMs), error],
        uncounts ? 1 : 0,
      ],
    )
    const number = Number(reply)
    if (number < 0) return 'lost'
    return number === 0 ? 'same' : { id, number }
  }

  /** Has a dead letter wait again. Resolves to its delivery, or nothing if it is no dead letter. */
  async retry(id: string, control: ControlCall): Promise<Delivery | undefined> {
    const found = await this.find(id, control)
    if (found?.status.state !== 'failed') return undefined
    const { keys, args } = this.records.ofDead(found.job)
    const [all, rest] = [
      [...keys, this.#unpublished],
      [...args, Date.now()],
    ] as const
    const requeued = await this.#own('requeue', all, rest, control)
    const number = Number(requeued)
    return number === 0 ? undefined : { id, number }
  }

  /** Forgets a dead letter. Resolves to false if it is none. */
  async forget(id: string, control: ControlCall): Promise<boolean> {
    const found = await this.find(id, control)
    return found?.status.state === 'failed' && this.records.changeDead(found.job, 'forget', control)
  }

  /**
   * Finds deliveries that were not confirmed for `afterMs` ms, with new numbers.
   * @param isEmpty true if RabbitMQ has no message: then jobs that wait have lost theirs
   */
  async overdueDeliveries(afterMs: number, isEmpty: boolean): Promise<readonly DueDelivery[]> {
    const nowMs = Date.now()
    const reply = await this.#own(
      'overdue-deliveries',
      [this.#unpublished, this.records.keys.places],
      [nowMs - afterMs, nowMs, sweptAtOnce, this.#toKey(''), isEmpty ? 1 : 0],
    )
    const [...items] = texts(reply)
    const found: DueDelivery[] = []
    for (let i = 0; i + 2 < items.length; i += 3) {
      const [id = '', number, dueAt] = items.slice(i, i + 3)
      found.push({ id, number: Number(number), dueAt: Number(dueAt) })
    }
    return found
  }

  async find(id: string, control?: ControlCall): Promise<FoundJob | undefined> {
    if (!isJobId(id)) return undefined
    const [found] = await this.#read([0, 0, id], control)
    return found
  }

  async deadLetters(first: number, last: number): Promise<readonly FoundJob[]> {
    return this.#read([first, last])
  }

  /** Tells for runs whether they are to stop: `stop`, `lost` to another run, or an empty text. */
  async watch(runs: readonly (readonly [id: string, token: string])[]): Promise<readonly string[]> {
    const args = [this.#toKey(''), this.records.flagKey(''), ...runs.flat()]
    return texts(await this.#own('watch', [this.records.keys.places], args))
  }

  async #read(
    which: readonly (string | number)[],
    control?: ControlCall,
  ): Promise<readonly FoundJob[]> {
    const rows = await this.#own(
      'read',
      [this.#toKey('failed')],
      [this.#toKey(''), ...which],
      control,
    )
    return Array.isArray(rows) ? rows.map((row) => foundJob(texts(row))) : []
  }

  async #end(
    job: StoredJob,
    end: { how: string; token: string; set: KeptSet; text: string },
    control?: ControlCall,
  ): Promise<WaitingEnd> {
    const { how, token, set, text } = end
    const { places, identities, flow, expiries } = this.records.keys
    const field = set === 'failed' ? 'failedReason' : 'returnvalue'
    const reply = await this.#own(
      'end',
      [
        ...[places, identities, flow, expiries, this.records.recordKey(job)],
        ...[this.records.flagKey(job.id), this.#toKey('active')],
        ...[this.#toKey(job.id), this.#toKey(set), ...this.records.keptKeys(set)],
      ],
      [
        ...[...placeOf(job), job.id, Date.now(), job.retentionMs, how, token, field, text, flagMs],
        ...this.records.keepArguments(job, set),
      ],
      control,
    )
    return waitingEndOf(reply)
  }

  #own(
    name: OwnScript,
    keys: readonly string[],
    args: readonly ScriptArgument[],
    control?: ControlCall,
  ): Promise<unknown> {
    return this.#run(`rabbitmq/${name}`, keys, args, control)
  }

  async #run(
    name: SharedScript | `rabbitmq/${OwnScript}`,
    keys: readonly string[],
    args: readonly ScriptArgument[],
    control?: ControlCall,
  ): Promise<unknown> {
    const parts = name.startsWith('rabbitmq/') ? ['rabbitmq/deliveries', name] : [name]
    const text = this.#texts.get(name) ?? scriptText(...parts)
    this.#texts.set(name, text)
    return this.#setup.runScript(text, keys, args.map(String), control)
  }

  #toKey(name: string): string {
    return `${this.#setup.keyPrefix}:${name}`
  }

  get #unpublished(): string {
    return this.records.key('unpublished')
  }
}

function foundJob(row: readonly string[]): FoundJob {
  const [id = '', data = '', returnvalue, failedReason, ...rest] = row
  const [attempts, finishedOn, token, began] = rest
  const isEnded = finishedOn !== ''
  const ended = returnvalue === '' ? 'failed' : 'completed'
  const open = token === '' ? 'waiting' : 'active'
  const fields = {
    ...{ id, data: parsed(data), failedReason, attemptsMade: Number(attempts) },
    returnvalue: returnvalue ? parsed(returnvalue) : undefined,
  }
  return {
    job: readJob(fields),
    status: statusOf(fields, isEnded ? ended : open),
    hasBegun: began === '1',
  }
}

/** A text that somebody else has changed counts as nothing. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
