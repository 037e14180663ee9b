import {
  type Cancellation,
  type Change,
  type Check,
  type CountedKey,
  type DecidingOp,
  endsWithin,
  errorText,
  type Outcome,
  type Policy,
  SluiceError,
  type Store,
  type StoreDenials,
  sleep,
  warnOnce,
} from '@sluice/core'
import {
  boundLogLimit,
  checkLogLimit,
  digestIdentity,
  engine,
  WorkingSet,
} from '@sluice/core/backend'
import { decideCall, type FunctionCall, patienceMs, queryOf, replyOf, ServerClock } from './call.ts'
import { KnownRows, type Row } from './known-rows.ts'
import {
  type PostgresPool,
  type PostgresStoreOptions,
  type PostgresStoreSetup,
  setUpPostgresStore,
} from './options.ts'

/** One request on its way to the database. */
interface Asked {
  readonly rows: readonly Row[]
  readonly cancellation: Cancellation | undefined
  /** Decides it from the states. Returns a function that answers once they are written. */
  decide(states: WorkingSet, now: number): () => void
  reject(error: unknown): void
}

/** Maximum requests per call. */
const maxAsked = 256
const sweepIntervalMs = 10_000
const sweptAtOnce = 5_000
/** Extra lifetime of a row, so that it is still there if a clock is set back. */
const marginMs = 60_000
/** Serialisation failure, deadlock, lock timeout: the server has rolled back. */
const rolledBack: readonly unknown[] = ['40001', '40P01', '55P03']
/** Undefined table or function. */
const notMigrated: readonly unknown[] = ['42P01', '42883']

/**
 * Keeps counts in Postgres. All processes that use a table share its counts. A process decides
 * concurrent requests from the rows that it knows. If the rows are unchanged, Postgres writes the
 * new states: one round trip. Otherwise Postgres returns the rows, and the process decides again.
 * Run `postgresMigration` first.
 * @param pool a `pg` pool. You own it: Sluice does not end it
 * @example
 * const store = postgresStore(new Pool({ connectionString: process.env.DATABASE_URL }))
 * @throws SluiceError if an option is out of range
 */
export function postgresStore(pool: PostgresPool, options: PostgresStoreOptions = {}): Store {
  return new PostgresStore(pool, setUpPostgresStore(pool, options))
}

class PostgresStore implements Store {
  readonly name = 'postgres'
  readonly denials: StoreDenials
  readonly keys: { digestOf(key: string): string }
  readonly telemetry: { lastFailure: Error | undefined } = { lastFailure: undefined }
  readonly #pool: PostgresPool
  readonly #setup: PostgresStoreSetup
  readonly #clock = new ServerClock()
  readonly #known: KnownRows
  #waiting: Asked[] = []
  #isGathering = false
  /** The current call. Requests that arrive meanwhile share the next one. */
  #call: Promise<void> | undefined
  /** Requests for locked rows, which do not block others. */
  readonly #apart = new Set<Promise<void>>()
  #sweeping: NodeJS.Timeout | undefined
  #isClosed = false
  readonly #noteFailure = (error: Error): void => {
    this.telemetry.lastFailure = error
  }

  constructor(pool: PostgresPool, setup: PostgresStoreSetup) {
    const { secret, clock, denialTtlMs } = setup
    this.#pool = pool
    this.#setup = setup
    this.#known = new KnownRows(secret)
    this.denials = { ttlMs: denialTtlMs, clock }
    this.keys = { digestOf: (key) => digestIdentity(key, secret) }
    // Without a listener, losing the server would crash the process.
    pool.on('error', this.#noteFailure)
  }

  accept(policies: readonly Policy[]): void {
    const fix = "use 'sliding-counter', or redisStore"
    for (const policy of policies) checkLogLimit(policy, fix)
  }

  apply(
    op: DecidingOp,
    checks: readonly Check[],
    cancellation?: Cancellation,
  ): Promise<readonly Outcome[]> {
    const bounded = checks.map(boundLogLimit)
    return this.#send(bounded, cancellation, (states, now) => engine[op](states, bounded, now))
  }

  change(change: Change, cancellation?: Cancellation): Promise<readonly boolean[]> {
    return this.#send(change.checks, cancellation, (states, now) =>
      engine.change(states, change, now),
    )
  }

  #send<Answer>(
    checks: readonly CountedKey[],
    cancellation: Cancellation | undefined,
    answerOf: (states: WorkingSet, now: number) => Answer,
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) {
        reject(storeClosed())
        return
      }
      this.#sweeping ??= setInterval(() => this.#sweep(), sweepIntervalMs).unref()
      const rows = checks.map((check) => this.#known.rowOf(check))
      const decide = (states: WorkingSet, now: number) => {
        const answer = answerOf(states, now)
        return () => resolve(answer)
      }
      this.#waiting.push({ rows, cancellation, decide, reject })
      if (this.#isGathering || this.#call) return
      this.#isGathering = true
      queueMicrotask(() => this.#startCall())
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#sweeping)
    // The requests of this tick are about to be sent.
    await Promise.resolve()
    await endsWithin(this.#drained(), patienceMs)
    for (const { reject } of this.#waiting.splice(0)) reject(storeClosed())
    this.#pool.off('error', this.#noteFailure)
  }

  async #drained(): Promise<void> {
    while (this.#call || this.#apart.size > 0) await Promise.all([this.#call, ...this.#apart])
  }

  /** Sends the requests of a tick together, in order of arrival. */
  #startCall(): void {
    this.#isGathering = false
    this.#call = undefined
    const batch = this.#waiting.splice(0, maxAsked)
    const isLocked = ({ rows }: Asked): boolean => rows.some((row) => row.isLocked)
    for (const asked of batch.filter(isLocked)) this.#decideAlone(asked)
    const others = batch.filter((asked) => !isLocked(asked))
    if (others.length > 0) this.#call = this.#decide(others).then(() => this.#startCall())
    else if (this.#waiting.length > 0) this.#startCall()
  }

  /** Decides a request separately, so that the others need not wait for a locked row. */
  #decideAlone(asked: Asked): void {
    for (const row of asked.rows) row.isLocked = true
    const work = this.#decide([asked], true).finally(() => {
      for (const row of asked.rows) row.isLocked = false
      this.#apart.delete(work)
    })
    this.#apart.add(work)
  }

  /** Decides requests in order of arrival, until they are written or nobody waits for them. */
  async #decide(batch: readonly Asked[], isAlone = false): Promise<void> {
    const begunAt = performance.now()
    let asked = batch
    let problem: unknown
    for (let attempt = 0; performance.now() - begunAt < 10 * patienceMs; attempt += 1) {
      asked = asked.filter((one) => isWanted(one))
      if (asked.length === 0) return
      // Other processes write the same rows: a random pause separates the next attempts.
      if (attempt > 2) await sleep(Math.random() * Math.min(attempt, 10))
      try {
        if (await this.#attempt(asked)) return
        problem = new Error('other processes kept changing the same rows')
      } catch (error) {
        problem = error
        if (!rolledBack.includes(codeOf(error))) break
        if (isAlone) continue
        for (const one of asked) this.#decideAlone(one)
        return
      }
    }
    const failure = failureOf(problem)
    this.telemetry.lastFailure = failure
    for (const { reject } of asked) reject(failure)
  }

  /**
   * Decides requests from the known rows, and settles them if the server accepts. Otherwise it
   * updates the known rows and returns false. A decision is exact for its time, since the rows did
   * not change between that time and the call.
   */
  async #attempt(asked: readonly Asked[]): Promise<boolean> {
    const { clock } = this.#setup
    const rows = new Map<string, Row>()
    const stored = new Map<string, string>()
    // If a row has two objects, the last one counts.
    for (const row of asked.flatMap((one) => one.rows)) rows.set(row.key, row)
    for (const { key, text } of rows.values()) if (text !== undefined) stored.set(key, text)
    const states = new WorkingSet(stored)
    const now = clock?.() ?? this.#clock.now()
    const answers = asked.map((one) => one.decide(states, now))
    const call = decideCall({ rows, changed: states.changed(now), now: clock ? null : now })
    const reply = replyOf(await this.#query(call))
    this.#clock.learn(reply.nowMs, reply.nowMs < now)
    if (reply.rows) {
      for (const row of rows.values()) {
        const { version = 0, text } = reply.rows.get(row.digest) ?? {}
        Object.assign(row, { version, text })
      }
      return false
    }
    call.written()
    for (const answer of answers) answer()
    return true
  }

  async #query(call: FunctionCall): Promise<unknown> {
    const { rows } = await this.#pool.query(queryOf(call, this.#setup))
    this.telemetry.lastFailure = undefined
    return rows[0]
  }

  /** Deletes expired rows. Only one process does this at a time. */
  async #sweep(): Promise<void> {
    const { table, clock } = this.#setup
    try {
      await this.#query({ name: 'sweep', args: [sweptAtOnce, clock ? clock() - marginMs : null] })
    } catch (error) {
      warnOnce(`expired rows of ${table} could not be deleted: ${errorText(error)}`)
    }
  }
}

function storeClosed(): SluiceError {
  return new SluiceError('SLUICE_STORE_FAILED', 'the store is closed')
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
