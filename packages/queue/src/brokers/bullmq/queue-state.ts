import type { ControlCall } from '@sluice/core'
import type { IRedisClient, Queue } from 'bullmq'
import type { KeptBounds } from '../kept-bounds.ts'
import { flagMs, QueueRecords, type WaitingEnd, waitingEndOf } from '../redis/queue-records.ts'
import { texts } from '../redis/queue-scripts.ts'
import { placeOf, recordMs, type StoredJob } from '../redis/stored-job.ts'
import { BullmqScripts } from './scripts.ts'

/** State of a job at the moment when a worker takes it. */
export interface Occupied {
  readonly isToStop: boolean
  /** Runs that began and never ended. */
  readonly interrupted: number
  readonly hasBegun: boolean
}

/** The steps that touch both our records and the keys of BullMQ's jobs. */
export class QueueState {
  readonly records: QueueRecords
  readonly #queue: Queue
  readonly #scripts: BullmqScripts

  constructor(queue: Queue, bounds: KeptBounds) {
    const scripts = new BullmqScripts(queue)
    this.#queue = queue
    this.#scripts = scripts
    this.records = new QueueRecords({
      bounds,
      toKey: (name) => queue.toKey(name),
      run: (...call) => scripts.run(...call),
      countActive: 'LLEN',
    })
  }

  get client(): Promise<IRedisClient> {
    return this.#scripts.client
  }

  /** Frees the place of a job that could not be added. Does nothing if the job exists after all. */
  async undo(job: StoredJob, claim: string): Promise<void> {
    const { places, identities, expiries } = this.records.keys
    await this.#scripts.run(
      'bullmq/undo',
      [places, identities, expiries, this.#jobKey(job), this.records.recordKey(job)],
      [...placeOf(job), job.record ? claim : ''],
    )
  }

  /** @param token lock of the run that ends the job, if a run does */
  async release(job: StoredJob, token = ''): Promise<void> {
    const { places, identities, flow, expiries } = this.records.keys
    const record = this.records.recordKey(job)
    const lock = `${this.#jobKey(job)}:lock`
    await this.#scripts.run(
      'bullmq/release',
      [places, identities, flow, expiries, record, lock, this.records.flagKey(job.id)],
      [...placeOf(job), job.id, Date.now(), job.retentionMs, token],
    )
  }

  /** Ends a job if it waits. @param how `withdrawn`: as if it had never been */
  async endWaiting(
    job: StoredJob,
    how: 'cancelled' | 'expired' | 'withdrawn',
    control?: ControlCall,
  ): Promise<WaitingEnd> {
    const { places, identities, flow, expiries } = this.records.keys
    const { delayed, prioritized, wait, completed } = this.#queue.keys
    const ending = JSON.stringify({ outcome: how })
    const reply = await this.#scripts.run(
      'bullmq/end-waiting',
      [
        ...[places, identities, flow, expiries, this.records.recordKey(job), this.#jobKey(job)],
        ...[delayed, prioritized, wait, this.#queue.toKey('paused'), completed],
        this.records.flagKey(job.id),
      ].map(String),
      [...[...placeOf(job), job.id, Date.now(), job.retentionMs, how, ending, flagMs]],
      control,
    )
    if (reply === 'ended' && how !== 'withdrawn') await this.records.keep(job, 'completed')
    return waitingEndOf(reply)
  }

  /** Keeps the place of a job that a worker takes. */
  async occupy(job: StoredJob): Promise<Occupied> {
    const { places, identities } = this.records.keys
    const { id } = job
    const keys = [this.records.recordKey(job), this.#jobKey(job), this.records.flagKey(id)]
    const reply = await this.#scripts.run(
      'bullmq/occupy',
      [places, identities, ...keys],
      [...placeOf(job), job.enqueuedAt, recordMs(job)],
    )
    const [flag, interrupted = 0, began] = texts(reply).map(Number)
    return { isToStop: flag === 1, interrupted, hasBegun: began === 1 }
  }

  async hasBegun(job: Pick<StoredJob, 'id'>): Promise<boolean> {
    const client = await this.client
    return (await client.hget(this.#jobKey(job), 'sluice:began')) !== null
  }

  /** True if a run still has the lock of its job. */
  async holdsLock(id: string, token: string | undefined): Promise<boolean> {
    return (await (await this.client).get(`${this.#jobKey({ id })}:lock`)) === token
  }

  /** True if a worker has to stop a job that it runs. */
  async isToStop(id: string): Promise<boolean> {
    return (await (await this.client).get(this.records.flagKey(id))) !== null
  }

  #jobKey({ id }: Pick<StoredJob, 'id'>): string {
    return this.records.jobKey(id)
  }
}
