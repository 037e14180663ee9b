import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { IRedisClient, Queue } from 'bullmq'
import type { Depth, Enqueued, EnqueueTerms } from '../broker.ts'
import type { NewJob } from '../job.ts'

/** A place older than this that has no job will never have one. */
const orphanAfterMs = 60_000
const sweptAtOnce = 100

const keyCounts = { enqueue: 4, release: 5, occupy: 3, depth: 4, sweep: 2 } as const
type ScriptName = keyof typeof keyCounts

/**
 * The places that a queue has for jobs, of which BullMQ knows nothing: it has no bound, and no identities. They live beside its keys,
 * under `<prefix>:<queue>:sluice:`.
 */
export class BullmqPlaces {
  readonly #queue: Queue
  readonly #client: Promise<IRedisClient>

  constructor(queue: Queue) {
    this.#queue = queue
    this.#client = queue.getBackend().client.then((client) => {
      for (const [name, numberOfKeys] of Object.entries(keyCounts)) {
        client.defineCommand(commandOf(name), { numberOfKeys, lua: luaOf(name) })
      }
      return client
    })
    // Reported by the queue; here it would be unhandled where nothing is asked meanwhile.
    this.#client.catch(() => undefined)
  }

  async take(job: NewJob, terms: EnqueueTerms): Promise<Enqueued> {
    const { idempotency } = terms
    const reply = await this.#run('enqueue', [
      ...this.#keys(),
      this.#recordKey(job.identity, idempotency?.key),
      job.id,
      digest(job.identity),
      job.enqueuedAt,
      terms.maxDepth,
      terms.maxDepthPerIdentity,
      idempotency ? digest(idempotency.fingerprint) : '',
      terms.retentionMs,
      this.#queue.toKey(''),
      this.#key('cancelled:'),
    ])
    const [outcome, id] = texts(reply)
    if (outcome === 'enqueued' || outcome === 'known') return { outcome, id: id ?? '' }
    if (outcome === 'mismatch') return { outcome }
    return { outcome: 'full', bound: outcome === 'identity' ? 'identity' : 'queue' }
  }

  /** By the record that `enqueue.lua` writes: `<fingerprint>:<job id>`. */
  async find(identity: string, idempotencyKey: string): Promise<string | undefined> {
    const record = await (await this.#client).get(this.#recordKey(identity, idempotencyKey))
    return record?.slice(record.indexOf(':') + 1)
  }

  /** For a job that took a place and could not be added. */
  async undo(job: NewJob, terms: EnqueueTerms): Promise<void> {
    const record = this.#recordKey(job.identity, terms.idempotency?.key)
    await this.#run('release', this.#releaseArgs(job, { record, how: 'undone', token: '' }))
  }

  /** @param token of the run that ends the job, where one does */
  async release(job: NewJob, token = ''): Promise<void> {
    const record = this.#recordKey(job.identity, undefined)
    await this.#run('release', this.#releaseArgs(job, { record, how: 'ended', token }))
  }

  /** Keeps the place of a job that begins to run; whether it was cancelled. */
  async occupy(job: NewJob): Promise<boolean> {
    const [places, identities] = this.#keys()
    const reply = await this.#run('occupy', [
      places,
      identities,
      this.#key(`cancelled:${job.id}`),
      ...placeOf(job),
      job.enqueuedAt,
    ])
    return reply === 1
  }

  /** Marks a job as cancelled, with what is to be told of it when it is gone. */
  async markCancelled(id: string, record: string, keptMs: number): Promise<void> {
    await (await this.#client).set(this.#key(`cancelled:${id}`), record, { PX: keptMs })
  }

  async unmarkCancelled(id: string): Promise<void> {
    await (await this.#client).del(this.#key(`cancelled:${id}`))
  }

  async cancelledRecord(id: string): Promise<string | undefined> {
    return (await (await this.#client).get(this.#key(`cancelled:${id}`))) ?? undefined
  }

  async depth(): Promise<Depth> {
    const nowMs = Date.now()
    const [places, , flow] = this.#keys()
    const { active, failed } = this.#queue.keys
    const reply = texts(await this.#run('depth', [places, flow, active, failed, nowMs]))
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

  #releaseArgs(
    job: NewJob,
    { record, how, token }: { record: string; how: 'ended' | 'undone'; token: string },
  ): readonly (string | number)[] {
    const lock = this.#queue.toKey(`${job.id}:lock`)
    return [...this.#keys(), record, lock, ...placeOf(job), Date.now(), how, token]
  }

  async sweep(): Promise<void> {
    const [places, identities] = this.#keys()
    const before = Date.now() - orphanAfterMs
    await this.#run('sweep', [places, identities, before, sweptAtOnce, this.#queue.toKey('')])
  }

  async #run(name: ScriptName, args: readonly (string | number | undefined)[]): Promise<unknown> {
    return (await this.#client).runCommand(commandOf(name), [...args])
  }

  #key(name: string): string {
    return this.#queue.toKey(`sluice:${name}`)
  }

  #keys(): [places: string, identities: string, flow: string] {
    return [this.#key('places'), this.#key('identities'), this.#key('flow')]
  }

  /** A client chooses its key, and another identity may choose the same. */
  #recordKey(identity: string, key: string | undefined): string {
    return this.#key(
      `idempotency:${key === undefined ? '' : digest(JSON.stringify([identity, key]))}`,
    )
  }
}

function placeOf({ id, identity }: NewJob): [place: string, identity: string] {
  const owner = digest(identity)
  return [`${owner}:${id}`, owner]
}

/** No identity, and no key of a client's, stands in Redis as it is, nor makes a key longer than others. */
function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22)
}

function commandOf(name: string): string {
  return `sluiceQueue${name[0]?.toUpperCase()}${name.slice(1)}`
}

function luaOf(name: string): string {
  return ['flow', name].map(readLua).join('\n')
}

function readLua(name: string): string {
  return readFileSync(new URL(`../../lua/${name}.lua`, import.meta.url), 'utf8')
}

function texts(reply: unknown): string[] {
  return Array.isArray(reply) ? reply.map(String) : []
}
