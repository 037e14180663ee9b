import { endsWithin, invalid, knownFields, SluiceError } from '@sluice/core'
import type { Queue } from 'bullmq'
import type { Broker, BrokerWorker, WorkOptions } from '../../broker.ts'
import { brokerFrom, type Transport } from '../job-broker.ts'
import type { RunTerms } from '../job-runs.ts'
import { type SharedOptions, type SharedSetup, sharedOptionNames, sharedSetup } from '../options.ts'
import { scriptJob, writeJob } from '../redis/job-fields.ts'
import { RedisJobTable } from '../redis/job-table.ts'
import type { RunScript } from '../redis/scripts.ts'
import type { StoredJob } from '../stored-job.ts'
import { type BullmqConnection, type Connect, connectOf } from './connection.ts'
import { BullmqScripts, type ScriptName } from './scripts.ts'
import { type Bullmq, BullmqWorker } from './worker.ts'

/** Options of `bullmqBroker`. */
export interface BullmqBrokerOptions extends SharedOptions {
  /**
   * Redis of the broker: `redis://…`, the options of an ioredis connection, or a function that
   * makes a client, for a Cluster or node-redis. The broker opens its own connections, and ends
   * them.
   */
  connection: string | object | (() => object)
  /** Prefix of BullMQ's keys; in braces (`{bull}`) for a Cluster. @default 'bull' */
  prefix?: string | undefined
}

/** The checked options of a BullMQ broker, with the defaults filled in. */
interface BullmqSetup extends SharedSetup {
  readonly prefix: string
  readonly connect: Connect
}

const optionNames: readonly (keyof BullmqBrokerOptions)[] = [
  'connection',
  'prefix',
  ...sharedOptionNames,
]

/** Attempts that BullMQ allows: so many that our worker decides, which counts them itself. */
const attemptsOfBullmq = 1_000_000

/** Number of BullMQ's events that are kept, approximately. */
const eventsKept = 10

/** Time (ms) that `close` waits for the connections, after the workers. */
const connectionPatienceMs = 1_000

/**
 * Keeps jobs in Redis by BullMQ 6. Install `bullmq` and `ioredis` beside it.
 * @example
 * const broker = bullmqBroker({ connection: 'redis://localhost' })
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function bullmqBroker(options: BullmqBrokerOptions): Broker {
  knownFields(options, 'bullmqBroker', optionNames)
  const { connection, prefix = 'bull' } = options
  if (typeof prefix !== 'string' || prefix === '') {
    throw invalid({ option: 'prefix' }, prefix, "a text, as in 'bull' or '{bull}'")
  }
  const setup = { ...sharedSetup(options), prefix, connect: connectOf(connection, prefix) }
  return brokerFrom({
    ...setup,
    isShared: true,
    make(report) {
      const transport = new BullmqTransport(setup, report)
      return { table: transport.table, transport }
    },
  })
}

interface Opened {
  readonly bullmq: Bullmq
  readonly connected: BullmqConnection
  readonly queue: Queue
  readonly scripts: BullmqScripts
}

class BullmqTransport implements Transport {
  readonly table: RedisJobTable
  readonly #setup: BullmqSetup
  readonly #report: (error: unknown) => void
  #opened: Promise<Opened> | undefined

  constructor(setup: BullmqSetup, report: (error: unknown) => void) {
    this.#setup = setup
    this.#report = report
    this.table = new RedisJobTable({ bounds: setup, run: this.#run, writesJobs: false })
  }

  async ready(): Promise<void> {
    await (await this.#open()).scripts.client
  }

  async deliver(job: StoredJob): Promise<void> {
    const { maxKept, maxDeadLetters } = this.#setup
    const { queue } = await this.#open()
    await queue.add('job', writeJob(job), {
      jobId: job.id,
      timestamp: job.enqueuedAt,
      attempts: attemptsOfBullmq,
      // For workers of earlier versions, which have BullMQ end jobs.
      backoff: { type: 'sluice' },
      stackTraceLimit: 0,
      removeOnComplete: { age: Math.ceil(job.retentionMs / 1_000), count: maxKept },
      removeOnFail: { count: maxDeadLetters },
    })
  }

  async undo(job: StoredJob, claim: string): Promise<void> {
    await this.#run('bullmq/undo', { job: scriptJob(job), claim })
  }

  async redeliver({ id }: StoredJob): Promise<boolean> {
    const { queue } = await this.#open()
    try {
      // This step is BullMQ's own, which knows no deadline.
      await (await queue.getJob(id))?.retry('failed', { resetAttemptsMade: true })
      return true
    } catch (error) {
      // Another process was first.
      if ((await this.table.find(id))?.status.state !== 'failed') return false
      throw error
    }
  }

  work(terms: RunTerms, options: WorkOptions): BrokerWorker {
    const { table } = this
    return new BullmqWorker({
      ...{ terms, options, table, queue: this.#setup, script: this.#run },
      open: () => this.#open(),
    })
  }

  async close(): Promise<void> {
    // A queue that could not be opened was reported to its caller, and has nothing to close.
    const opened = await this.#opened?.catch(() => undefined)
    if (!opened) return
    const { queue, scripts, connected } = opened
    if (!(await endsWithin(queue.close(), connectionPatienceMs))) {
      // It waits for an answer to its farewell.
      scripts.client.then(
        (client) => client.disconnect(),
        () => undefined,
      )
    }
    connected.end()
  }

  readonly #run: RunScript<ScriptName> = async (...call) => {
    const { name, prefix } = this.#setup
    return (await this.#open()).scripts.run(`${prefix}:${name}:`, ...call)
  }

  /** Opens the queue on first use: a broker without use has no connection. */
  #open(): Promise<Opened> {
    this.#opened ??= this.#connect()
    return this.#opened
  }

  async #connect(): Promise<Opened> {
    const bullmq = await loadBullmq()
    const { name, connect, prefix } = this.#setup
    const connected = connect()
    const queue = new bullmq.Queue(name, {
      ...{ connection: connected.ofQueue, prefix },
      // Sluice does not read the events.
      streams: { events: { maxLen: eventsKept } },
    })
    queue.on('error', this.#report)
    return { bullmq, connected, queue, scripts: new BullmqScripts(queue) }
  }
}

async function loadBullmq(): Promise<Bullmq> {
  try {
    return await import('bullmq')
  } catch (cause) {
    const message = 'bullmqBroker needs bullmq 6 and ioredis: npm install bullmq ioredis'
    throw new SluiceError('SLUICE_BROKER_FAILED', message, { cause })
  }
}
