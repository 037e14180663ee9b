import type { ControlCall } from '@sluice/core'
import type { Depth, EnqueueTerms, Page } from '../../broker.ts'
import type {
  Ending,
  FoundJob,
  JobTable,
  Placed,
  PutBack,
  RunMark,
  WaitingEnd,
  WaitingEnded,
} from '../job-table.ts'
import { bytesOfEnded, type KeptBounds } from '../options.ts'
import { recordKey, type StoredJob, shortDigest } from '../stored-job.ts'
import { foundJob, isJobId, scriptJob, writeJob } from './job-fields.ts'
import { type RunScript, type SharedScript, texts } from './scripts.ts'

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
 * Longest life (ms) of the flag that asks a running job to stop. Its worker looks twice a second.
 */
const flagMs = 86_400_000

interface RedisJobTableOptions {
  readonly bounds: KeptBounds
  readonly run: RunScript<SharedScript>
  /** True if a job is written with its place. BullMQ adds its jobs itself. */
  readonly writesJobs: boolean
}

/**
 * The jobs of a queue in Redis, for every broker that keeps them there. The places, idempotency
 * keys and bounds lie beside the jobs, under `sluice:`.
 */
export class RedisJobTable implements JobTable {
  readonly #run: RunScript<SharedScript>
  readonly #bounds: object
  readonly #writesJobs: boolean
  #sweepFrom = 0

  constructor({ bounds, run, writesJobs }: RedisJobTableOptions) {
    const { maxKept, maxDeadLetters, maxKeptBytes } = bounds
    this.#bounds = { maxKept, maxDeadLetters, maxKeptBytes, bytesOfEnded }
    this.#run = run
    this.#writesJobs = writesJobs
  }

  async place(job: StoredJob, { maxDepth, maxDepthPerIdentity }: EnqueueTerms): Promise<Placed> {
    const text = this.#writesJobs ? JSON.stringify(writeJob(job)) : ''
    const args = { job: scriptJob(job), maxDepth, maxDepthPerIdentity, claimMs }
    const [outcome, id = '', expired] = texts(await this.#run('enqueue', args, { text }))
    if (outcome === 'enqueued') return { outcome: 'placed', id, isKnown: false }
    if (outcome === 'adding') return { outcome: 'placed', id, isKnown: true }
    if (outcome === 'known') return { outcome, id }
    if (outcome === 'mismatch') return { outcome }
    const bound = outcome === 'identity' ? 'identity' : 'queue'
    return { outcome: 'full', bound, hasExpired: Number(expired) > 0 }
  }

  async expired(): Promise<readonly string[]> {
    return texts(await this.#run('overdue', { count: endedAtOnce }))
  }

  async find(id: string, control?: ControlCall): Promise<FoundJob | undefined> {
    if (!isJobId(id)) return undefined
    const [found] = await this.#read({ only: id }, control)
    return found
  }

  async findByKey(identity: string, idempotencyKey: string): Promise<string | undefined> {
    const record = recordKey(identity, idempotencyKey)
    const id = await this.#run('find', { job: { identity: shortDigest(identity), record } })
    return id === '' ? undefined : String(id)
  }

  async depth(): Promise<Depth> {
    const nowMs = Date.now()
    const reply = texts(await this.#run('depth', { now: nowMs }))
    const [depth = 0, running = 0, dead = 0, oldestAt = 0, spanMs = 0, into = 0, out = 0] =
      reply.map(Number)
    const seconds = Math.max(1, spanMs / 1_000)
    return {
      ...{ depth, running, dead },
      oldestMs: reply[3] === '' ? 0 : Math.max(0, nowMs - oldestAt),
      inPerSecond: into / seconds,
      outPerSecond: out / seconds,
    }
  }

  async deadLetters({ offset, limit }: Page): Promise<readonly FoundJob[]> {
    return this.#read({ first: offset, last: offset + limit - 1 })
  }

  async endWaiting(job: StoredJob, how: WaitingEnd, control?: ControlCall): Promise<WaitingEnded> {
    return this.#end(job, { how, set: 'completed' }, { text: written(how), control })
  }

  async reopen(job: StoredJob, control: ControlCall): Promise<number> {
    return Number(await this.#run('reopen', { job: scriptJob(job) }, { control }))
  }

  async forget(job: StoredJob, control: ControlCall): Promise<boolean> {
    return Number(await this.#run('forget', { job: scriptJob(job) }, { control })) === 1
  }

  async begin(job: StoredJob, { token }: RunMark): Promise<boolean> {
    return Number(await this.#run('begin', { job: scriptJob(job), token })) === 1
  }

  async end(job: StoredJob, { id, token }: RunMark, settlement: Ending): Promise<boolean> {
    const isDead = settlement.outcome === 'dead'
    const result = settlement.outcome === 'done' ? settlement.result : undefined
    const text = isDead ? settlement.error : written(settlement.outcome, result)
    const set = isDead ? 'failed' : 'completed'
    return (await this.#end(job, { how: 'run', run: id, token, set }, { text })) === 'ended'
  }

  async putBack(
    job: StoredJob,
    { id, token }: RunMark,
    back: PutBack,
    uncounts: boolean,
  ): Promise<number> {
    const { outcome } = back
    const delayMs = outcome === 'returned' ? 0 : back.delayMs
    const error = outcome === 'retry' ? back.error : ''
    const dueAt = Math.ceil(Date.now() + delayMs)
    const args = { job: scriptJob(job), run: id, token, outcome, error, dueAt, uncounts }
    return Number(await this.#run('put-back', args))
  }

  async watch(runs: readonly (readonly [id: string, token: string])[]): Promise<readonly string[]> {
    return texts(await this.#run('watch', { runs }))
  }

  /**
   * Frees places whose jobs were never added, and drops outcomes that are too old. It looks at some
   * thousands of old places, and continues from there the next time.
   */
  async sweep(): Promise<void> {
    const before = Date.now() - orphanAfterMs
    for (let i = 0; i < sweepsAtOnce; i += 1) {
      const args = { before, skip: this.#sweepFrom, count: sweptAtOnce, bounds: this.#bounds }
      this.#sweepFrom = Number(await this.#run('sweep', args))
      if (this.#sweepFrom === 0) break
    }
  }

  async #read(which: object, control?: ControlCall): Promise<readonly FoundJob[]> {
    const rows = await this.#run('read', which, { control })
    return Array.isArray(rows) ? rows.map((row) => foundJob(texts(row))) : []
  }

  async #end(
    job: StoredJob,
    end: { how: string; set: 'completed' | 'failed'; run?: string; token?: string },
    options: { text: string; control?: ControlCall | undefined },
  ): Promise<WaitingEnded> {
    const { identity, enqueuedAt, retentionMs } = job
    const data = JSON.stringify({ identity, enqueuedAt, retentionMs })
    const args = { job: scriptJob(job), ...end, data, flagMs, bounds: this.#bounds }
    const reply = await this.#run('end', args, options)
    return endings.find((ended) => ended === String(reply)) ?? 'unknown'
  }
}

const endings = ['ended', 'running', 'finished', 'unknown'] as const

/** Writes the return value of a job that ended without an error. */
function written(outcome: string, result?: unknown): string {
  return JSON.stringify({ outcome, result })
}
