import type { ControlCall } from '@sluice/core'
import type { FoundJob, JobTable, WaitingEnded } from '../job-table.ts'
import { bytesOfEnded, type KeptBounds } from '../options.ts'
import { recordKey, type StoredJob, shortDigest } from '../stored-job.ts'
import { foundJob, isJobId, scriptJob, writeJob } from './job-fields.ts'
import { type RunScript, type SharedScript, texts } from './scripts.ts'

/** Age (ms) after which a place without a job will never get one. */
const orphanAfterMs = 60_000
/** Time (ms) within which a job must be added to its reserved place; later it never is. */
const claimMs = 2 * orphanAfterMs
const sweptAtOnce = 100
const sweepsAtOnce = 50

/** Most expired jobs that are ended in one step to make room. */
const endedAtOnce = 50

/** Lifetime (ms) of the flag that asks a run to stop. Its worker checks twice a second. */
const flagMs = 86_400_000

interface RedisJobTableOptions {
  readonly bounds: KeptBounds
  readonly run: RunScript<SharedScript>
  /** True if a job is stored together with its place. BullMQ adds its jobs itself. */
  readonly writesJobs: boolean
}

export interface RedisJobTable extends JobTable {
  /**
   * Frees places whose jobs were never added, and drops outcomes that are too old. It checks a few
   * thousand old places, and continues from there next time.
   */
  sweep(): Promise<void>
}

/**
 * Creates the job table of a queue in Redis, for every broker that keeps jobs there. Places,
 * idempotency keys and counters are stored next to the jobs, under `sluice:`.
 */
export function redisJobTable(options: RedisJobTableOptions): RedisJobTable {
  const { run, writesJobs } = options
  const { maxDeadLetters, maxKept, maxKeptBytes } = options.bounds
  const bounds = { maxDeadLetters, maxKept, maxKeptBytes, bytesOfEnded }
  let sweepFrom = 0

  async function read(which: object, control?: ControlCall): Promise<readonly FoundJob[]> {
    const rows = await run('read', which, { control })
    return Array.isArray(rows) ? rows.map((row) => foundJob(texts(row))) : []
  }

  async function end(
    job: StoredJob,
    how: { how: string; set: 'completed' | 'failed'; run?: string; token?: string },
    written: { text: string; control?: ControlCall | undefined },
  ): Promise<WaitingEnded> {
    const { identity, enqueuedAt, retentionMs } = job
    const data = JSON.stringify({ identity, enqueuedAt, retentionMs })
    const reply = await run('end', { job: scriptJob(job), ...how, data, flagMs, bounds }, written)
    return endings.find((ending) => ending === String(reply)) ?? 'unknown'
  }

  return {
    async place(job, { maxDepth, maxDepthPerIdentity }) {
      const text = writesJobs ? JSON.stringify(writeJob(job)) : ''
      const args = { job: scriptJob(job), maxDepth, maxDepthPerIdentity, claimMs }
      const [outcome, id = '', expired] = texts(await run('enqueue', args, { text }))
      if (outcome === 'enqueued') return { outcome: 'placed', id, isKnown: false }
      if (outcome === 'adding') return { outcome: 'placed', id, isKnown: true }
      if (outcome === 'known') return { outcome, id }
      if (outcome === 'mismatch') return { outcome }
      const bound = outcome === 'identity' ? 'identity' : 'queue'
      return { outcome: 'full', bound, hasExpired: Number(expired) > 0 }
    },

    expired: async () => texts(await run('overdue', { count: endedAtOnce })),

    find: async (id, control) => {
      return isJobId(id) ? (await read({ only: id }, control))[0] : undefined
    },

    async findByKey(identity, idempotencyKey) {
      const record = recordKey(identity, idempotencyKey)
      const id = await run('find', { job: { identity: shortDigest(identity), record } })
      return id === '' ? undefined : String(id)
    },

    async depth() {
      const nowMs = Date.now()
      const reply = texts(await run('depth', { now: nowMs }))
      const [depth = 0, running = 0, dead = 0, oldestAt = 0, spanMs = 0, into = 0, out = 0] =
        reply.map(Number)
      const seconds = Math.max(1, spanMs / 1_000)
      const oldestMs = reply[3] === '' ? 0 : Math.max(0, nowMs - oldestAt)
      const rates = { inPerSecond: into / seconds, outPerSecond: out / seconds }
      return { depth, running, dead, oldestMs, ...rates }
    },

    deadLetters: ({ offset, limit }) => read({ first: offset, last: offset + limit - 1 }),

    endWaiting: (job, how, control) =>
      end(job, { how, set: 'completed' }, { text: JSON.stringify({ outcome: how }), control }),

    async reopen(job, control) {
      return Number(await run('reopen', { job: scriptJob(job) }, { control }))
    },

    async forget(job, control) {
      return Number(await run('forget', { job: scriptJob(job) }, { control })) === 1
    },

    async begin(job, { token }) {
      return Number(await run('begin', { job: scriptJob(job), token })) === 1
    },

    async end(job, { id, token }, { onSettled: _, ...settlement }) {
      const isDead = settlement.outcome === 'dead'
      const text = isDead ? settlement.error : JSON.stringify(settlement)
      const set = isDead ? 'failed' : 'completed'
      return (await end(job, { how: 'run', run: id, token, set }, { text })) === 'ended'
    },

    async putBack(job, { id, token }, back, uncounts) {
      const { outcome } = back
      const delayMs = outcome === 'returned' ? 0 : back.delayMs
      const error = outcome === 'retry' ? back.error : ''
      const dueAt = Math.ceil(Date.now() + delayMs)
      const args = { job: scriptJob(job), run: id, token, outcome, dueAt, uncounts }
      // Not among the arguments: JSON in Redis has no lone surrogates.
      return Number(await run('put-back', args, { text: error }))
    },

    watch: async (runs) => texts(await run('watch', { runs })),

    async sweep() {
      const before = Date.now() - orphanAfterMs
      for (let i = 0; i < sweepsAtOnce; i += 1) {
        const args = { before, skip: sweepFrom, count: sweptAtOnce, bounds }
        sweepFrom = Number(await run('sweep', args))
        if (sweepFrom === 0) break
      }
    },
  }
}

const endings = ['ended', 'running', 'finished', 'unknown'] as const
