import { createHash } from 'node:crypto'
import type {
  Cancellation,
  Check,
  MaybePromise,
  Outcome,
  Store,
  StoreDenials,
  StoreOp,
} from '@sluice/core'
import { engine, stateKey, WorkingSet } from '@sluice/core/backend'
import type { Pool, PoolClient } from 'pg'

export interface PostgresStoreOptions {
  /** The table of the states: a plain identifier. @default 'sluice_states' */
  table?: string
  /** How long a denial may be answered from memory, in ms; 0 asks the database every time. @default 0 */
  denialTtlMs?: number
  /** Milliseconds since the epoch, for tests. @default the clock of the database */
  clock?: () => number
}

/** One request's checks on their way to the database, and who waits for them. */
interface Asked {
  readonly op: StoreOp
  readonly checks: readonly Check[]
  readonly cancellation: Cancellation | undefined
  resolve(outcomes: readonly Outcome[]): void
  reject(error: unknown): void
}

/** The requests that one transaction decides at most. */
const mostAsked = 200
const sweepIntervalMs = 10_000
const sweptAtOnce = 1_000
/** A state outlives its last unit by this, so that a clock that is set back finds it. */
const marginMs = 60_000

/** Creates the table of the states, if there is none: run it once, before the first process starts. */
export async function createStatesTable(pool: Pool, table = 'sluice_states'): Promise<void> {
  await pool.query(
    `CREATE UNLOGGED TABLE IF NOT EXISTS ${table} (digest bytea PRIMARY KEY, state text NOT NULL, ends_at bigint NOT NULL)`,
  )
  await pool.query(`CREATE INDEX IF NOT EXISTS ${table}_ends_at ON ${table} (ends_at)`)
}

/** Counts in Postgres. Requests that meet are decided in one transaction; all processes on the table share the counts. */
export function postgresStore(pool: Pool, options: PostgresStoreOptions = {}): Store {
  return new PostgresStore(pool, options)
}

class PostgresStore implements Store {
  readonly denials: StoreDenials
  readonly #clock: (() => number) | undefined
  readonly #pool: Pool
  readonly #table: string
  readonly #waiting: Asked[] = []
  #working: Promise<void> | undefined
  #sweptAt = 0

  constructor(
    pool: Pool,
    { table = 'sluice_states', denialTtlMs = 0, clock }: PostgresStoreOptions,
  ) {
    if (!/^[a-z_][a-z0-9_]*$/.test(table)) {
      throw new Error(
        `table must be a plain identifier, such as 'sluice_states', but is '${table}'`,
      )
    }
    this.#pool = pool
    this.#table = table
    this.denials = { ttlMs: denialTtlMs, clock }
    this.#clock = clock
  }

  apply(
    op: StoreOp,
    checks: readonly Check[],
    cancellation?: Cancellation,
  ): MaybePromise<readonly Outcome[]> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ op, checks, cancellation, resolve, reject })
      this.#working ??= this.#work()
    })
  }

  async close(): Promise<void> {
    await this.#working
  }

  /** Decides one batch after another; requests that arrive meanwhile are the next batch. */
  async #work(): Promise<void> {
    // All requests of this tick travel together.
    await Promise.resolve()
    while (this.#waiting.length > 0) {
      const batch = this.#waiting
        .splice(0, mostAsked)
        .filter(({ cancellation }) => !cancellation?.isUnwanted)
      if (batch.length > 0) await this.#decide(batch)
    }
    this.#working = undefined
  }

  async #decide(batch: readonly Asked[]): Promise<void> {
    let client: PoolClient | undefined
    try {
      client = await this.#pool.connect()
      const outcomes = await this.#inTransaction(client, batch)
      client.release()
      for (const [index, asked] of batch.entries()) asked.resolve(outcomes[index] ?? [])
    } catch (error) {
      // Closes the connection, which rolls back.
      client?.release(true)
      for (const asked of batch) asked.reject(error)
    }
  }

  /** Locks the keys in sorted order, loads their states, decides, and writes what has changed. */
  async #inTransaction(
    client: PoolClient,
    batch: readonly Asked[],
  ): Promise<readonly (readonly Outcome[])[]> {
    const keys = digestsOf(batch.flatMap(({ checks }) => checks))
    // Counts need not survive a crash of the database, so that nobody waits for its disk.
    await client.query('BEGIN; SET LOCAL synchronous_commit TO OFF')
    // Advisory locks also hold keys that do not exist yet.
    await client.query('SELECT pg_advisory_xact_lock(lock) FROM unnest($1::bigint[]) AS lock', [
      keys.map(({ digest }) => String(digest.readBigInt64BE())),
    ])
    const { now, stored } = await this.#load(client, keys)
    const states = new WorkingSet(stored)
    const outcomes = batch.map(({ op, checks }) => engine[op](states, checks, now))
    await this.#write(client, states, now)
    await this.#sweep(client, now)
    await client.query('COMMIT')
    return outcomes
  }

  async #load(
    client: PoolClient,
    keys: readonly DigestedKey[],
  ): Promise<{ now: number; stored: ReadonlyMap<string, string> }> {
    const { rows } = await client.query<{ now: string; digest: Buffer | null; state: string }>(
      `SELECT now, digest, state
       FROM (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now) AS clock
       LEFT JOIN ${this.#table} ON digest = ANY($1)`,
      [keys.map(({ digest }) => digest)],
    )
    const texts = new Map(rows.map(({ digest, state }) => [digest?.toString('hex'), state]))
    const stored = new Map<string, string>()
    for (const { key, digest } of keys) {
      const text = texts.get(digest.toString('hex'))
      if (text) stored.set(key, text)
    }
    return { now: this.#clock?.() ?? Number(rows[0]?.now), stored }
  }

  async #write(client: PoolClient, states: WorkingSet, now: number): Promise<void> {
    const changed = states.changed(now)
    const kept = changed.filter(({ text }) => text !== undefined)
    const gone = changed.filter(({ text }) => text === undefined)
    if (kept.length > 0) {
      await client.query(
        `INSERT INTO ${this.#table} (digest, state, ends_at)
         SELECT * FROM unnest($1::bytea[], $2::text[], $3::bigint[])
         ON CONFLICT (digest) DO UPDATE SET state = excluded.state, ends_at = excluded.ends_at`,
        [
          kept.map(({ key }) => digestOf(key)),
          kept.map(({ text }) => text),
          kept.map(({ endsAt }) => endsAt),
        ],
      )
    }
    if (gone.length > 0) {
      await client.query(`DELETE FROM ${this.#table} WHERE digest = ANY($1)`, [
        gone.map(({ key }) => digestOf(key)),
      ])
    }
  }

  /** Deletes some of the states that have ended, now and then. */
  async #sweep(client: PoolClient, now: number): Promise<void> {
    if (Math.abs(now - this.#sweptAt) < sweepIntervalMs) return
    this.#sweptAt = now
    await client.query(
      `DELETE FROM ${this.#table} WHERE digest IN (
         SELECT digest FROM ${this.#table} WHERE ends_at < $1
         LIMIT ${sweptAtOnce} FOR UPDATE SKIP LOCKED)`,
      [now - marginMs],
    )
  }
}

interface DigestedKey {
  readonly key: string
  readonly digest: Buffer
}

/** Each key once, in the order in which all processes lock them. */
function digestsOf(checks: readonly Check[]): readonly DigestedKey[] {
  return [...new Set(checks.map(stateKey))]
    .map((key) => ({ key, digest: digestOf(key) }))
    .sort((one, other) => one.digest.compare(other.digest))
}

/** Of a fixed length, and without the identity. UTF-16 keeps lone surrogates apart, which UTF-8 would not. */
function digestOf(key: string): Buffer {
  return createHash('sha256').update(Buffer.from(key, 'utf16le')).digest()
}
