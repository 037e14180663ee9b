import type { ControlCall } from '@sluice/core'
import type { Depth, Enqueued, EnqueueTerms } from '../../broker.ts'
import type { JobStatus } from '../../job.ts'
import { bytesOfEnded, type KeptBounds } from '../kept-bounds.ts'
import { type RunScript, type ScriptArgument, type SharedScript, texts } from './queue-scripts.ts'
import { placeOf, recordKey, recordMs, type StoredJob, shortDigest } from './stored-job.ts'

/** Age (ms) after which a place without a job never gets one. */
const orphanAfterMs = 60_000
/**
 * Time (ms) within which a job is added after its place was reserved. After it, the job is not
 * added.
 */
const claimMs = 2 * orphanAfterMs
const sweptAtOnce = 100
const sweepsAtOnce = 50

/** Most expired jobs that are ended in one step to make room. */
const endedAtOnce = 50

/**
 * A place that is taken for a job, which is to be delivered now. Its idempotency key may be known
 * already, from a process that has not added it.
 */
export interface TakenPlace {
  readonly outcome: 'taken'
  readonly id: string
  readonly isKnown: boolean
}

/** A job's claim to a place. */
interface PlaceClaim {
  /** Id of the call that is about to deliver the job. */
  readonly claim: string
  readonly terms: EnqueueTerms
  /** Text of the job, if it is written with its place. */
  readonly text?: string
}

/** The queue is full, partly of jobs that have expired. */
interface FullOfOverdue {
  readonly outcome: 'overdue'
  readonly bound: 'queue' | 'identity'
}

/** The sets of jobs that have ended, and kept outcomes or dead letters. */
export type KeptSet = 'completed' | 'failed'

interface QueueRecordsOptions {
  readonly bounds: KeptBounds
  /** Makes the name of a key of the queue, or of a job by its id. */
  readonly toKey: (name: string) => string
  readonly run: RunScript<SharedScript>
  /** The command that counts the running jobs in the key `active`: BullMQ has a list. */
  readonly countActive: 'LLEN' | 'SCARD'
}

/**
 * Bounds, idempotency keys, gauges and kept outcomes of a queue in Redis, for every broker that
 * keeps jobs there. They lie beside the jobs, under `sluice:`.
 */
export class QueueRecords {
  readonly #options: QueueRecordsOptions
  #sweepFrom = 0

  constructor(options: QueueRecordsOptions) {
    this.#options = options
  }

  /**
   * Takes a place for a job. If the queue is full, jobs that have expired are ended to make room.
   * @param end ends such a job, and resolves to its status, if the job still waits
   */
  async take(
    job: StoredJob,
    claim: PlaceClaim,
    { ask, end }: { ask: ControlCall; end: (id: string) => Promise<JobStatus | undefined> },
  ): Promise<Enqueued | TakenPlace> {
    let taken = await this.#tryToTake(job, claim)
    if (taken.outcome === 'overdue' && !ask.isUnwanted) {
      const args = [Date.now(), endedAtOnce, this.jobKey('')]
      const ids = texts(await this.#options.run('overdue', [this.keys.expiries], args))
      const ended = await Promise.all(ids.map(end))
      for (const status of ended) if (status) claim.terms.onExpired?.(status)
      taken = await this.#tryToTake(job, claim)
    }
    return taken.outcome === 'overdue' ? { outcome: 'full', bound: taken.bound } : taken
  }

  async #tryToTake(
    job: StoredJob,
    { claim, terms, text = '' }: PlaceClaim,
  ): Promise<Enqueued | TakenPlace | FullOfOverdue> {
    const { places, identities, flow, expiries } = this.keys
    const reply = await this.#options.run(
      'enqueue',
      [places, identities, flow, expiries, this.recordKey(job), this.key('unpublished')],
      [
        ...[claim, shortDigest(job.identity), job.enqueuedAt],
        ...[terms.maxDepth, terms.maxDepthPerIdentity],
        ...[job.record?.fingerprint ?? '', recordMs(job), claimMs, job.expiresAt ?? ''],
        ...[this.jobKey(''), text, Date.now()],
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
    const record = this.key(`idempotency:${recordKey(identity, idempotencyKey)}`)
    const args = [shortDigest(identity), this.jobKey('')]
    const id = String(await this.#options.run('find', [record, this.keys.places], args))
    return id === '' ? undefined : id
  }

  /**
   * Counts a run that begins, or takes the count back for a run that did not begin after all.
   * Resolves to false if the job is not there, or runs elsewhere.
   * @param token of the run, for brokers that mark jobs by it
   */
  async begin(job: StoredJob, step: 1 | -1 = 1, token = ''): Promise<boolean> {
    const [place] = placeOf(job)
    const keys = [this.jobKey(job.id), this.keys.expiries]
    return Number(await this.#options.run('begin', keys, [place, step, token])) === 1
  }

  /** Prepares a dead letter to run again, or forgets it. Resolves to false if it is none. */
  async changeDead(
    job: StoredJob,
    script: 'reopen' | 'forget',
    control: ControlCall,
  ): Promise<boolean> {
    const { keys, args } = this.ofDead(job)
    return Number(await this.#options.run(script, keys, args, control)) === 1
  }

  /** Keys and arguments of `reopen.lua`. */
  ofDead(job: StoredJob): { keys: string[]; args: ScriptArgument[] } {
    const { places, identities } = this.keys
    const says = job.record ? `${job.record.fingerprint}:${job.id}` : ''
    const failed = this.#options.toKey('failed')
    const keys = [this.jobKey(job.id), failed, this.flagKey(job.id), ...this.keptKeys('failed')]
    return {
      keys: [places, identities, this.recordKey(job), ...keys],
      args: [...placeOf(job), job.enqueuedAt, recordMs(job), says, job.id],
    }
  }

  /**
   * Counts the bytes kept of an ended job, and drops its payload unless it may run again. Without a
   * job, drops outcomes that are too old.
   */
  async keep(job: StoredJob | undefined, set: KeptSet): Promise<void> {
    const keys = [this.jobKey(job?.id ?? ''), this.#options.toKey(set), ...this.keptKeys(set)]
    await this.#options.run('keep', keys, this.keepArguments(job, set))
  }

  /** Arguments of the function `keep` of `kept.lua`. */
  keepArguments(job: StoredJob | undefined, set: KeptSet): (string | number)[] {
    const { id = '', retentionMs = 0, identity = '', enqueuedAt = 0 } = job ?? {}
    const isDead = set === 'failed'
    const { maxDeadLetters, maxKept, maxKeptBytes } = this.#options.bounds
    const data = isDead || !job ? '' : JSON.stringify({ identity, enqueuedAt, retentionMs })
    return [
      ...[id, Date.now(), isDead ? '' : retentionMs, data],
      ...[isDead ? maxDeadLetters : maxKept, maxKeptBytes, bytesOfEnded, this.jobKey('')],
    ]
  }

  async depth(): Promise<Depth> {
    const nowMs = Date.now()
    const { places, flow } = this.keys
    const { run, toKey, countActive } = this.#options
    const keys = [places, flow, toKey('active'), toKey('failed')]
    const reply = texts(await run('depth', keys, [nowMs, countActive]))
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
    const { places, identities, expiries } = this.keys
    const before = Date.now() - orphanAfterMs
    for (let i = 0; i < sweepsAtOnce; i += 1) {
      const args = [before, this.#sweepFrom, sweptAtOnce, this.jobKey('')]
      const next = await this.#options.run('sweep', [places, identities, expiries], args)
      this.#sweepFrom = Number(next)
      if (this.#sweepFrom === 0) break
    }
    await this.keep(undefined, 'completed')
  }

  get keys(): { readonly [key in 'places' | 'identities' | 'flow' | 'expiries']: string } {
    return {
      places: this.key('places'),
      identities: this.key('identities'),
      flow: this.key('flow'),
      expiries: this.key('expiries'),
    }
  }

  key(name: string): string {
    return this.#options.toKey(`sluice:${name}`)
  }

  jobKey(id: string): string {
    return this.#options.toKey(id)
  }

  /** Flag of a job that is to stop. */
  flagKey(id: string): string {
    return this.key(`stop:${id}`)
  }

  /** Record of an idempotency key. */
  recordKey({ record }: StoredJob): string {
    return this.key(`idempotency:${record?.key ?? ''}`)
  }

  /** Ids of the kept outcomes, and their bytes. */
  keptKeys(set: KeptSet): [kept: string, bytes: string] {
    return [this.key(`kept:${set}`), this.key(`kept:${set}:bytes`)]
  }
}

/**
 * - `ended`: it waited, and has ended now
 * - `running`: a worker has it
 */
export type WaitingEnd = (typeof waitingEnds)[number]

const waitingEnds = ['ended', 'running', 'finished', 'unknown'] as const

export function waitingEndOf(reply: unknown): WaitingEnd {
  return waitingEnds.find((end) => end === String(reply)) ?? 'unknown'
}

/**
 * Longest life (ms) of the flag that asks a running job to stop. Its worker looks twice a second.
 */
export const flagMs = 86_400_000
