import {
  checkedElsewhere,
  type Duration,
  durationMs,
  durationOption,
  invalid,
  type Option,
  type OptionsOf,
  type RequiredOption,
  readOptions,
  type Store,
  type StoreScripts,
  textOption,
  warnOnce,
  withoutRegions,
} from '@sluice/core'
import type { Broker, WorkOptions } from '../../broker.ts'
import { brokerOver, type Report, type Transport } from '../job-broker.ts'
import { repeat } from '../job-runs.ts'
import { type SharedSetup, SharedTable } from '../options.ts'
import { type RedisJobTable, redisJobTable } from '../redis/job-table.ts'
import { type RunScript, scriptInput, scriptText } from '../redis/scripts.ts'
import { type RabbitmqServer, serverOf } from './connection.ts'
import { Publisher, type ScriptName } from './publisher.ts'
import { sweepMs, sweepOf } from './sweep.ts'
import { RabbitmqWorker } from './worker.ts'

class RabbitmqTable extends SharedTable {
  /**
   * RabbitMQ: `amqp://…` or `amqps://…`, the options of an amqplib connection, or a function that
   * creates a connection, for example with your own certificate. The broker closes what it opens.
   */
  connection: RequiredOption<string | object | (() => Promise<object>), RabbitmqServer> = serverOf
  /** Redis store that keeps the jobs: `redisStore(client)`. The broker never closes its client. */
  store: RequiredOption<Store> = checkedElsewhere
  /** Prefix of RabbitMQ's queues and of the keys in Redis. @default 'sluice' */
  prefix?: Option<string, string> = textOption(
    'sluice',
    /^[A-Za-z0-9._-]{1,100}$/,
    "1 to 100 letters, digits, '.', '_' and '-'",
  )
  /**
   * The server's `consumer_timeout`, after which the server takes a job back from a worker.
   * @default '30m', as on the server
   */
  consumerTimeout?: Option<Duration, number> = durationOption('30m', durationMs)
}

/** Options of `rabbitmqBroker`. */
export interface RabbitmqBrokerOptions extends OptionsOf<RabbitmqTable> {}

/** The checked options of a RabbitMQ broker, with the defaults filled in. */
interface RabbitmqSetup extends SharedSetup {
  readonly server: RabbitmqServer
  /** The RabbitMQ queue. */
  readonly queue: string
  readonly script: RunScript<ScriptName>
  readonly consumerTimeoutMs: number
}

/**
 * Maximum time (ms) for which a worker holds a job that waits for its rate. RabbitMQ closes the
 * channel of a worker that holds a message for half an hour, which ends all its runs.
 */
const maxHeldMs = 10_000

/** Time (ms) for which a message outlives its job, which counts as expired earlier. */
const messageMarginMs = 600_000

/**
 * Delivers jobs through RabbitMQ, and keeps them in Redis. Install `amqplib` too.
 * @example
 * const broker = rabbitmqBroker({ connection: 'amqp://localhost', store: redisStore(redis) })
 * @throws SluiceError if an option is unknown, missing or out of range
 */
export function rabbitmqBroker(options: RabbitmqBrokerOptions): Broker {
  const setup = setUpRabbitmq(options)
  const table = redisJobTable({ bounds: setup, run: setup.script, writesJobs: true })
  const { name, deadlineMs, observers } = setup
  const traits = { name, isShared: true, maxHeldMs, deadlineMs, observers }
  return brokerOver(traits, (report) => ({ table, transport: transportOf(setup, table, report) }))
}

function setUpRabbitmq(options: RabbitmqBrokerOptions): RabbitmqSetup {
  const settings = readOptions(new RabbitmqTable(), options, 'rabbitmqBroker')
  const { connection: server, name, prefix, store, consumerTimeout: consumerTimeoutMs } = settings
  // All keys are in one slot of a Cluster.
  const script = scriptsIn(withoutRegions(store), `{${prefix}:${name}}:`)
  return { ...settings, server, queue: `${prefix}.${name}`, script, consumerTimeoutMs }
}

function scriptsIn(store: Store | undefined, prefix: string): RunScript<ScriptName> {
  const scripts: StoreScripts | undefined = store?.scripts
  if (!scripts) {
    const what = 'a Redis store: redisStore(client)'
    throw invalid({ option: 'store' }, store?.name ?? store, what)
  }
  const known = new Map<string, string>()
  return async (name, args, { text, control } = {}) => {
    const script = known.get(name) ?? scriptText('rabbitmq', name)
    known.set(name, script)
    const [key, values] = scriptInput(prefix, args, text)
    return scripts.run(script, [key], values, control)
  }
}

function transportOf(setup: RabbitmqSetup, table: RedisJobTable, onError: Report): Transport {
  const { name, server, queue, script, deadlineMs, consumerTimeoutMs } = setup
  const publisher = new Publisher({ server, queue, script, deadlineMs, onError })
  const sweep = sweepOf({ table, script, publisher, deadlineMs })
  let stopSweeping: (() => void) | undefined

  function startSweeping(): void {
    stopSweeping ??= repeat(sweepMs, sweep, onError)
  }

  function warnOfLongRuns({ timeoutMs = 0 }: WorkOptions): void {
    if (timeoutMs + maxHeldMs <= consumerTimeoutMs) return
    warnOnce(
      `the queue '${name}': a run may take ${timeoutMs} ms, and a job may wait ${maxHeldMs} ms for its rate, but RabbitMQ takes it back after ${consumerTimeoutMs} ms. Lower the worker's timeout, or raise consumer_timeout in rabbitmq.conf and consumerTimeout of rabbitmqBroker`,
    )
  }

  return {
    // Nothing is stored while nothing can be delivered.
    async ready() {
      await publisher.ready()
      startSweeping()
    },
    async deliver({ id, enqueuedAt, expiresAt }) {
      const lastsMs = expiresAt === undefined ? undefined : expiresAt - enqueuedAt
      const expiresMs = lastsMs === undefined ? undefined : lastsMs + messageMarginMs
      await publisher.publish({ id, number: 1 }, { expiresMs })
    },
    async undo(job) {
      if (!job.record) await table.endWaiting(job, 'withdrawn')
    },
    async redeliver({ id }, number) {
      startSweeping()
      // The job is already waiting again. Unpublished jobs are swept.
      await publisher.publish({ id, number }).catch(onError)
      return true
    },
    work(terms, options) {
      warnOfLongRuns(options)
      startSweeping()
      return new RabbitmqWorker({ terms, options, server, queue, script, publisher })
    },
    async close() {
      stopSweeping?.()
      await publisher.close()
    },
  }
}
