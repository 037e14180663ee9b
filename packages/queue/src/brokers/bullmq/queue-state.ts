import type { IRedisClient, Queue } from 'bullmq'
import type { Depth, Enqueued, EnqueueTerms } from '../../broker.ts'
import { bytesOfEnded, type KeptBounds } from '../kept-bounds.ts'
import { recordKey, type StoredJob, shortDigest } from './job.ts'
import { BullmqScripts } from './scripts.ts'

/** Age (ms) after which a place without a job never gets one. */
const orphanAfterMs = 60_000
/**
 * Time (ms) within which a job is added after its place was reserved. After it, the job is not
 * added.
 */
const claimMs = 2 * orphanAfterMs
const sweptAtOnce = 100
const sweepsAtOnce = 50

/**
 * Longest life (ms) of the flag that asks a running job to stop. Its worker looks twice a second.
 */
const flagMs = 86_400_000

/** Time (ms) by which a record outlives its retention. The end of the job shortens it. */
const recordMarginMs = 30 * 86_400_000

/**
 * A place that is taken for a job, which is to be added now. Its idempotency key may be known
 * already, from a process that has not added it.
 */
export interface TakenPlace {
  readonly outcome: 'taken'
  readonly id: string
  readonly isKnown: boolean
}

/** The queue is full, partly of jobs that have expired. */
export interface FullOfOverdue {
  readonly outcome: 'overdue'
  readonly bound: 'queue' | 'identity'
}

/** State of a job at the moment when a worker takes it. */
export interface Occupied {
  readonly isToStop: boolean
  /** Runs that began and never ended. */
  readonly interrupted: number
  readonly hasBegun: boolean
}

export type WaitingEnd = 'ended' | 'running' | 'finished' | 'unknown'

/** BullMQ's sets of jobs that have ended. */
type KeptSet = 'completed' | 'failed'

/**
 * The places of a queue for jobs: BullMQ itself has no bound, and no identities. They are kept
 * beside its keys, under `<prefix>:<queue>:sluice:`.
 */
export class QueueState {
  readonly #queue: Queue
  readonly #scripts: BullmqScripts
  readonly #bounds: KeptBounds
  #sweepFrom = 0

  constructor(queue: Queue, bounds: KeptBounds) {
    this.#queue = queue
    this.#bounds = bounds
    this.#scripts = new BullmqScripts(queue)
  }

  get client(): Promise<IRedisClient> {
    return this.#scripts.client
  }

  /** @param claim id of the call that is about to add the job */
  async take(
    job: StoredJob,
    claim: string,
    terms: EnqueueTerms,
  ): Promise<Enqueued | TakenPlace | FullOfOverdue> {
    const { places, identities, flow, expiries } = this.#keys
    const reply = await this.#scripts.run(
      'enqueue',
      [places, identities, flow, expiries, this.#recordKey(job)],
      [
        ...[claim, shortDigest(job.identity), job.enqueuedAt],
        ...[terms.maxDepth, terms.maxDepthPerIdentity],
        ...[job.record?.fingerprint ?? '', recordMs(job), claimMs, job.expiresAt ?? ''],
        this.#queue.toKey(''),
      ],
    )
    const [outcome, id = '', overdue] = texts(reply)
    if (outcome === 'enqueued') return { outcome: 'taken', id, isKnown: false }
    if (outcome === 'adding') return { outcome: 'taken', id, isKnown: true }
    if (outcome === 'known') return { outcome, id }
    if (outcome === 'mismatch') return { outcome }
    const bound = outcome === 'identity' ? 'identity' : 'queue'
    return { outcome: Number(overdue) > 0 ? 'overdue' : 'full', bound }
  }

  /** Finds the id of the job that an idempotency key stands for. */
  async find(identity: string, idempotencyKey: string): Promise<string | undefined> {
    const record = this.#key(`idempotency:${recordKey(identity, idempotencyKey)}`)
    const args = [shortDigest(identity), this.#queue.toKey('')]
    const id = await this.#scripts.run('find', [record, this.#keys.places], args)
    return typeof id === 'string' && id !== '' ? id : undefined
  }

  /** Frees the place of a job that could not be added. Does nothing if the job exists after all. */
  async undo(job: StoredJob, claim: string): Promise<void> {
    const { places, identities, expiries } = this.#keys
    await this.#scripts.run(
      'undo',
      [places, identities, expiries, this.#jobKey(job), this.#recordKey(job)],
      [...placeOf(job), job.record ? claim : ''],
    )
  }

  /** @param token lock of the run that ends the job, if a run does */
  async release(job: StoredJob, token = ''): Promise<void> {
    const { places, identities, flow, expiries } = this.#keys
    const lock = `${this.#jobKey(job)}:lock`
    await this.#scripts.run(
      'release',
      [places, identities, flow, expiries, this.#recordKey(job), lock, this.#flagKey(job.id)],
      [...placeOf(job), job.id, Date.now(), job.retentionMs, token],
    )
  }

  /** Ends a job if it waits. @param how `withdrawn`: as if it had never been */
  async endWaiting(
    job: StoredJob,
    how: 'cancelled' | 'expired' | 'withdrawn',
  ): Promise<WaitingEnd> {
    const { places, identities, flow, expiries } = this.#keys
    const { delayed, prioritized, wait, completed } = this.#queue.keys
    const ending = JSON.stringify({ outcome: how })
    const reply = await this.#scripts.run(
      'end-waiting',
      [
        ...[places, identities, flow, expiries, this.#recordKey(job), this.#jobKey(job)],
        ...[delayed, prioritized, wait, this.#queue.toKey('paused'), completed],
        this.#flagKey(job.id),
      ].map(String),
      [...[...placeOf(job), job.id, Date.now(), job.retentionMs, how, ending, flagMs]],
    )
    if (reply === 'ended' && how !== 'withdrawn') await this.keep(job, 'completed')
    return waitingEnds.find((end) => end === reply) ?? 'unknown'
  }

  /** Keeps the place of a job that a worker takes. */
  async occupy(job: StoredJob): Promise<Occupied> {
    const { places, identities } = this.#keys
    const reply = await this.#scripts.run(
      'occupy',
      [places, identities, this.#recordKey(job), this.#jobKey(job), this.#flagKey(job.id)],
      [...placeOf(job), job.enqueuedAt, recordMs(job)],
    )
    const [flag, interrupted = 0, began] = texts(reply).map(Number)
    return { isToStop: flag === 1, interrupted, hasBegun: began === 1 }
  }

  /** Counts a run that begins, or takes the count back for a run that did not begin after all. */
  async begin(job: StoredJob, step: 1 | -1 = 1): Promise<void> {
    const [place] = placeOf(job)
    await this.#scripts.run('begin', [this.#jobKey(job), this.#keys.expiries], [place, step])
  }

  async hasBegun({ id }: Pick<StoredJob, 'id'>): Promise<boolean> {
    const client = await this.client
    return (await client.hget(this.#jobKey({ id }), 'sluice:began')) !== null
  }

  /** Prepares a dead letter to run again, or forgets it. Resolves to false if it is none. */
  async changeDead(job: StoredJob, script: 'reopen' | 'forget'): Promise<boolean> {
    const { places, identities } = this.#keys
    const says = job.record ? `${job.record.fingerprint}:${job.id}` : ''
    const { failed = '' } = this.#queue.keys
    const keys = [this.#jobKey(job), failed, this.#flagKey(job.id), ...this.#keptKeys('failed')]
    const reply = await this.#scripts.run(
      script,
      [places, identities, this.#recordKey(job), ...keys],
      [...placeOf(job), job.enqueuedAt, recordMs(job), says, job.id],
    )
    return reply === 1
  }

  /**
   * Counts the bytes kept of an ended job, and drops its payload unless it may run again. Without a
   * job, drops outcomes that are too old.
   */
  async keep(job: StoredJob | undefined, set: KeptSet): Promise<void> {
    const { id = '', retentionMs = 0, identity = '', enqueuedAt = 0 } = job ?? {}
    const isDead = set === 'failed'
    const { maxDeadLetters, maxKept, maxKeptBytes } = this.#bounds
    const data = isDead || !job ? '' : JSON.stringify({ identity, enqueuedAt, retentionMs })
    await this.#scripts.run(
      'keep',
      [this.#jobKey({ id }), String(this.#queue.keys[set]), ...this.#keptKeys(set)],
      [
        ...[id, Date.now(), isDead ? '' : retentionMs, data],
        ...[isDead ? maxDeadLetters : maxKept, maxKeptBytes, bytesOfEnded, this.#queue.toKey('')],
      ],
    )
  }

  /** True if a run still has the lock of its job. */
  async holdsLock(id: string, token: string | undefined): Promise<boolean> {
    return (await (await this.client).get(`${this.#jobKey({ id })}:lock`)) === token
  }

  /** True if a worker has to stop a job that it runs. */
  async isToStop(id: string): Promise<boolean> {
    return (await (await this.client).get(this.#flagKey(id))) !== null
  }

  /** Finds jobs that have expired. */
  async overdue(limit: number): Promise<readonly string[]> {
    const args = [Date.now(), limit, this.#queue.toKey('')]
    return texts(await this.#scripts.run('overdue', [this.#keys.expiries], args))
  }

  async depth(): Promise<Depth> {
    const nowMs = Date.now()
    const { places, flow } = this.#keys
    const { active, failed } = this.#queue.keys
    const keys = [places, flow, active, failed].map(String)
    const reply = texts(await this.#scripts.run('depth', keys, [nowMs]))
    const [depth = 0, running = 0, dead = 0, oldestAt = 0, spanMs = 0, into = 0, out = 0] =
      reply.map(Number)
    const seconds = Math.max(1, spanMs / 1_000)
    return {
      depth,
      running,
      dead,
      oldestMs: reply[3] === '' ? 0 : Math.max(0, nowMs - oldestAt),
      inPerSecond: into / seconds,
      outPerSecond: out / seconds,
    }
  }

  /** Looks at some thousands of old places, and continues from there the next time. */
  async sweep(): Promise<void> {
    const { places, identities, expiries } = this.#keys
    const before = Date.now() - orphanAfterMs
    for (let i = 0; i < sweepsAtOnce; i += 1) {
      const args = [before, this.#sweepFrom, sweptAtOnce, this.#queue.toKey('')]
      const next = await this.#scripts.run('sweep', [places, identities, expiries], args)
      this.#sweepFrom = Number(next)
      if (this.#sweepFrom === 0) break
    }
    await this.keep(undefined, 'completed')
  }

  #keptKeys(set: KeptSet): [kept: string, bytes: string] {
    return [this.#key(`kept:${set}`), this.#key(`kept:${set}:bytes`)]
  }

  get #keys() {
    return {
      places: this.#key('places'),
      identities: this.#key('identities'),
      flow: this.#key('flow'),
      expiries: this.#key('expiries'),
    }
  }

  #key(name: string): string {
    return this.#queue.toKey(`sluice:${name}`)
  }

  #jobKey({ id }: Pick<StoredJob, 'id'>): string {
    return this.#queue.toKey(id)
  }

  #flagKey(id: string): string {
    return this.#key(`stop:${id}`)
  }

  #recordKey({ record }: StoredJob): string {
    return this.#key(`idempotency:${record?.key ?? ''}`)
  }
}

const waitingEnds: readonly WaitingEnd[] = ['ended', 'running', 'finished', 'unknown']

function placeOf({ id, identity }: StoredJob): [place: string, identity: string] {
  const owner = shortDigest(identity)
  return [`${owner}:${id}`, owner]
}

function recordMs({ enqueuedAt, expiresAt = enqueuedAt, retentionMs }: StoredJob): number {
  return Math.max(0, expiresAt - enqueuedAt) + retentionMs + recordMarginMs
}

function texts(reply: unknown): string[] {
  return Array.isArray(reply) ? reply.map(String) : []
}
