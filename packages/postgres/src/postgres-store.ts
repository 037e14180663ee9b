import {
  type Cancellation,
  type Check,
  errorText,
  type Outcome,
  SluiceError,
  type Store,
  type StoreDenials,
  type StoreOp,
  sleep,
  warnOnce,
} from '@sluice/core'
import { digestIdentity, engine, WorkingSet } from '@sluice/core/backend'
import { decideCall, type Reply, replyOf } from './call.ts'
import { KnownRows, type Row } from './known-rows.ts'
import {
  type PostgresPool,
  type PostgresStoreOptions,
  type PostgresStoreSetup,
  setUpPostgresStore,
} from './options.ts'
import { ServerClock } from './server-clock.ts'

/** One request's checks on their way to the database. */
interface Asked {
  readonly op: StoreOp
  readonly checks: readonly Check[]
  readonly cancellation: Cancellation | undefined
  resolve(outcomes: readonly Outcome[]): void
  reject(error: unknown): void
}

/** The most requests of one call. */
const maxAsked = 256
/** Time (ms) after which a connection that does not answer is given up, and a call is not repeated. */
const patienceMs = 1_000
const sweepIntervalMs = 10_000
const sweptAtOnce = 5_000
/** Serialisation failure, deadlock, lock timeout: the server has rolled back. */
const rolledBack: readonly unknown[] = ['40001', '40P01', '55P03']
/** Undefined table or function. */
const notMigrated: readonly unknown[] = ['42P01', '42883']

/**
 * Keeps counts in Postgres ≥ 13. All processes on a table share its counts. A process decides the
 * requests of a moment by the rows as it knows them, and Postgres writes the new states if the rows
 * are still the same: one round trip. Otherwise Postgres returns the rows, and the process decides
 * again. Run `postgresMigration` before.
 * @param pool of `pg`. It stays yours: Sluice does not end it
 * @example
 * const store = postgresStore(new Pool({ connectionString: process.env.DATABASE_URL }))
 * @throws SluiceError when an option is out of range
 */
export function postgresStore(pool: PostgresPool, options: PostgresStoreOptions = {}): Store {
  return new PostgresStore(pool, setUpPostgresStore(pool, options))
}

class PostgresStore implements Store {
  readonly name = 'postgres'
  readonly denials: StoreDenials
  readonly keys: { digestOf(key: string): string }
  readonly telemetry: { readonly lastFailure: Error | undefined }
  readonly #pool: PostgresPool
  readonly #setup: PostgresStoreSetup
  readonly #clock = new ServerClock()
  readonly #known: KnownRows
  readonly #waiting: Asked[] = []
  #working: Promise<void> | undefined
  #sweeping: NodeJS.Timeout | undefined
  #lastFailure: Error | undefined
  #isClosed = false
  readonly #noteFailure = (error: Error): void => {
    this.#lastFailure = error
  }

  constructor(pool: PostgresPool, setup: PostgresStoreSetup) {
    const { secret, clock, denialTtlMs } = setup
    const lastFailure = () => this.#lastFailure
    this.#pool = pool
    this.#setup = setup
    this.#known = new KnownRows(secret)
    this.denials = { ttlMs: denialTtlMs, clock }
    this.keys = { digestOf: (key) => digestIdentity(key, secret) }
    this.telemetry = {
      get lastFailure() {
        return lastFailure()
      },
    }
    // Without a listener the process would end with the server.
    pool.on('error', this.#noteFailure)
  }

  apply(
    op: StoreOp,
    checks: readonly Check[],
    cancellation?: Cancellation,
  ): Promise<readonly Outcome[]> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) {
        reject(new SluiceError('SLUICE_STORE_FAILED', 'the store is closed'))
        return
      }
      this.#sweeping ??= setInterval(() => this.#sweep(), sweepIntervalMs).unref()
      this.#waiting.push({ op, checks, cancellation, resolve, reject })
      this.#working ??= this.#work()
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#sweeping)
    await this.#working
    this.#pool.off('error', this.#noteFailure)
  }

  /** Decides one batch after another. Requests that arrive meanwhile are the next batch. */
  async #work(): Promise<void> {
    // All requests of this tick travel together.
    await Promise.resolve()
    while (this.#waiting.length > 0) await this.#decide(this.#waiting.splice(0, maxAsked))
    this.#working = undefined
  }

  /** Decides requests in order of arrival, until they are written or nobody waits for them. */
  async #decide(batch: readonly Asked[]): Promise<void> {
    const begunAt = performance.now()
    let asked = batch
    let problem: unknown
    let refusedAt: number | undefined
    for (let attempt = 0; performance.now() - begunAt < patienceMs; attempt += 1) {
      asked = asked.filter((one) => isWanted(one))
      if (asked.length === 0) return
      // Others write the same rows: they need not come from the same moment again.
      if (attempt > 2) await sleep(Math.random() * Math.min(attempt, 10))
      try {
        refusedAt = await this.#attempt(asked, refusedAt)
        if (refusedAt === undefined) return
        problem = new Error('other processes kept changing the same rows')
      } catch (error) {
        problem = error
        if (!rolledBack.includes(codeOf(error))) break
        refusedAt = undefined
      }
    }
    const failure = failureOf(problem)
    for (const { reject } of asked) reject(failure)
  }

  /**
   * Decides requests by the rows as they are known, and settles them if the server agrees.
   * Otherwise it returns the time at which the server read the rows.
   * @param readAt that time, of the attempt before. A decision of that time is exact: the server
   *   takes it only if nothing has changed since
   */
  async #attempt(asked: readonly Asked[], readAt: number | undefined): Promise<number | undefined> {
    const { table, clock } = this.#setup
    const rows = this.#known.rowsOf(asked.flatMap(({ checks }) => checks))
    const stored = new Map<string, string>()
    for (const [key, { text }] of rows) if (text !== undefined) stored.set(key, text)
    const states = new WorkingSet(stored)
    const now = clock?.() ?? readAt ?? this.#clock.now()
    const outcomes = asked.map(({ op, checks }) => engine[op](states, checks, now))
    const call = decideCall(table, {
      rows,
      changed: states.changed(now),
      now: clock ? undefined : now,
    })
    const reply = replyOf(await this.#query(call.text))
    this.#clock.learn(reply.nowMs, reply.nowMs < now)
    if (reply.rows) {
      refresh(rows, reply.rows)
      return reply.nowMs
    }
    call.written()
    for (const [index, { resolve }] of asked.entries()) resolve(outcomes[index] ?? [])
    return undefined
  }

  async #query(text: string): Promise<unknown> {
    const { rows } = await this.#pool.query({ text, query_timeout: patienceMs })
    this.#lastFailure = undefined
    return rows[0]
  }

  /** Deletes rows that have ended. Of all processes one does that at a time. */
  async #sweep(): Promise<void> {
    const { table, clock } = this.#setup
    const before = clock ? `, ${clock() - sweepIntervalMs}` : ''
    try {
      await this.#query(`SELECT ${table}_sweep(${sweptAtOnce}${before}) AS reply`)
    } catch (error) {
      // The next sweep deletes them too.
      warnOnce(`rows of ${table} that have ended could not be deleted: ${errorText(error)}`)
    }
  }
}

/** Takes over the rows that the server has. */
function refresh(rows: ReadonlyMap<string, Row>, current: NonNullable<Reply['rows']>): void {
  for (const row of rows.values()) {
    const { version = 0, text } = current.get(row.digest) ?? {}
    row.version = version
    row.text = text
  }
}

function isWanted({ cancellation, reject }: Asked): boolean {
  if (!cancellation?.isUnwanted) return true
  reject(new SluiceError('SLUICE_STORE_DEADLINE', 'the store did not answer in time'))
  return false
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}

function failureOf(cause: unknown): SluiceError {
  const fix = notMigrated.includes(codeOf(cause))
    ? '; run the SQL of postgresMigration() in the schema of search_path'
    : ''
  return new SluiceError('SLUICE_STORE_FAILED', `Postgres: ${errorText(cause)}${fix}`, { cause })
}
