import {
  checkedElsewhere,
  endsWithin,
  type Option,
  type OptionsOf,
  type RequiredOption,
  readOptions,
  type SettingsOf,
  SluiceError,
  textOption,
} from '@sluice/core'
import type { IRedisClient, Queue } from 'bullmq'
import type { Broker } from '../../broker.ts'
import { brokerOver, type Report, type Transport } from '../job-broker.ts'
import { SharedTable } from '../options.ts'
import { scriptJob, writeJob } from '../redis/job-fields.ts'
import { type RedisJobTable, redisJobTable } from '../redis/job-table.ts'
import type { RunScript } from '../redis/scripts.ts'
import { type BullmqConnection, type Connect, connectOf } from './connection.ts'
import { runScript, type ScriptName, withScripts } from './scripts.ts'
import { type Bullmq, BullmqWorker } from './worker.ts'

class BullmqTable extends SharedTable {
  /**
   * Redis connection: `redis://…`, ioredis options, or a function that creates a client, for a
   * Cluster or node-redis. The broker opens its own connections and closes them.
   */
  connection: RequiredOption<string | object | (() => object)> = checkedElsewhere
  /** Prefix of BullMQ's keys, in braces for a Cluster: `{bull}`. @default 'bull' */
  prefix?: Option<string, string> = textOption('bull', /./, "a string, such as 'bull' or '{bull}'")
}

/** Options of `bullmqBroker`. */
export interface BullmqBrokerOptions extends OptionsOf<BullmqTable> {}

/** The checked options of a BullMQ broker, with the defaults filled in. */
interface BullmqSetup extends SettingsOf<BullmqTable> {
  readonly connect: Connect
}

/** Attempts that BullMQ allows: enough that our worker, which counts attempts itself, decides. */
const attemptsOfBullmq = 1_000_000

/** Approximate number of BullMQ events to keep. */
const eventsKept = 10

/** Time (ms) that `close` waits for the connections, after the workers. */
const connectionPatienceMs = 1_000

/**
 * Keeps jobs in Redis with BullMQ 6. Install `bullmq` and `ioredis` too.
 * @example
 * const broker = bullmqBroker({ connection: 'redis://localhost' })
 * @throws SluiceError if an option is unknown, missing or out of range
 */
export function bullmqBroker(options: BullmqBrokerOptions): Broker {
  const settings = readOptions(new BullmqTable(), options, 'bullmqBroker')
  const setup = { ...settings, connect: connectOf(settings.connection, settings.prefix) }
  const { name, deadlineMs, observers } = setup
  return brokerOver({ name, isShared: true, deadlineMs, observers }, (report) =>
    open(setup, report),
  )
}

interface Opened {
  readonly bullmq: Bullmq
  readonly connected: BullmqConnection
  readonly queue: Queue
  readonly client: Promise<IRedisClient>
}

function open(setup: BullmqSetup, onError: Report): { table: RedisJobTable; transport: Transport } {
  const { name, prefix } = setup
  let opening: Promise<Opened> | undefined

  /** Opens the queue on first use: an unused broker has no connection. */
  function opened(): Promise<Opened> {
    opening ??= connect()
    return opening
  }

  async function connect(): Promise<Opened> {
    const bullmq = await loadBullmq()
    const connected = setup.connect()
    const queue = new bullmq.Queue(name, {
      ...{ connection: connected.ofQueue, prefix },
      // Sluice does not read the events.
      streams: { events: { maxLen: eventsKept } },
    })
    queue.on('error', onError)
    const client = withScripts(queue)
    // The queue reports the error. Without this it would be an unhandled rejection if no script
    // runs meanwhile.
    client.catch(() => undefined)
    return { bullmq, connected, queue, client }
  }

  const run: RunScript<ScriptName> = async (script, args, options) => {
    // A look-up changes nothing: the change that follows has a deadline.
    if (script === 'read') options?.control?.promise()
    const { client } = await opened()
    return runScript(await client, `${prefix}:${name}:`, script, args, options)
  }
  const table = redisJobTable({ bounds: setup, run, writesJobs: false })

  const transport: Transport = {
    async ready() {
      await (await opened()).client
    },
    async deliver(job) {
      const { queue } = await opened()
      await queue.add('job', writeJob(job), {
        jobId: job.id,
        timestamp: job.enqueuedAt,
        attempts: attemptsOfBullmq,
        // For workers of earlier versions, which let BullMQ end jobs.
        backoff: { type: 'sluice' },
        stackTraceLimit: 0,
        removeOnComplete: { age: Math.ceil(job.retentionMs / 1_000), count: setup.maxKept },
        removeOnFail: { count: setup.maxDeadLetters },
      })
    },
    async undo(job, claim) {
      await run('bullmq/undo', { job: scriptJob(job), claim })
    },
    async redeliver({ id }) {
      const { queue } = await opened()
      try {
        // BullMQ performs this step, which has no deadline.
        await (await queue.getJob(id))?.retry('failed', { resetAttemptsMade: true })
        return true
      } catch (error) {
        // Another process was faster.
        if ((await table.find(id))?.status.state !== 'failed') return false
        throw error
      }
    },
    work: (terms, options) =>
      new BullmqWorker({ terms, options, table, queue: setup, script: run, open: opened }),
    async close() {
      // A queue that could not be opened was reported to its caller, and has nothing to close.
      const last = await opening?.catch(() => undefined)
      if (!last) return
      const { queue, client, connected } = last
      if (!(await endsWithin(queue.close(), connectionPatienceMs))) {
        // It waits for a reply to QUIT.
        client.then(
          (connection) => connection.disconnect(),
          () => undefined,
        )
      }
      connected.end()
    },
  }
  return { table, transport }
}

async function loadBullmq(): Promise<Bullmq> {
  try {
    return await import('bullmq')
  } catch (cause) {
    const message = 'bullmqBroker needs bullmq 6 and ioredis: npm install bullmq ioredis'
    throw new SluiceError('SLUICE_BROKER_FAILED', message, { cause })
  }
}
