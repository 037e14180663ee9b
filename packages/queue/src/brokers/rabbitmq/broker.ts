import {
  type Duration,
  durationMs,
  invalid,
  knownFields,
  orDefault,
  type Store,
  type StoreScripts,
  warnOnce,
  withoutRegions,
} from '@sluice/core'
import type { Broker, BrokerWorker, WorkOptions } from '../../broker.ts'
import { brokerFrom, type Transport } from '../job-broker.ts'
import type { RunTerms } from '../job-runs.ts'
import { type SharedOptions, type SharedSetup, sharedOptionNames, sharedSetup } from '../options.ts'
import { RedisJobTable } from '../redis/job-table.ts'
import { type RunScript, scriptInput, scriptText } from '../redis/scripts.ts'
import type { StoredJob } from '../stored-job.ts'
import { type RabbitmqServer, serverOf } from './connection.ts'
import { MessageTable, type ScriptName } from './message-table.ts'
import { Publisher } from './publisher.ts'
import { Sweep } from './sweep.ts'
import { RabbitmqWorker } from './worker.ts'

/** Options of `rabbitmqBroker`. */
export interface RabbitmqBrokerOptions extends SharedOptions {
  /**
   * RabbitMQ: `amqp://…` or `amqps://…`, the options of a connection of amqplib, or a function that
   * makes a connection, as for a certificate of your own. The broker ends what it opens.
   */
  connection: string | object | (() => Promise<object>)
  /** Redis, where jobs are kept: `redisStore(client)`. The client stays yours. */
  store: Store
  /** Begins the names of RabbitMQ's queues and of the keys in Redis. @default 'sluice' */
  prefix?: string | undefined
  /**
   * The server's `consumer_timeout`: it takes a job from a worker that holds it for longer.
   * @default '30m', as the server's
   */
  consumerTimeout?: Duration | undefined
}

/** The checked options of a RabbitMQ broker, with the defaults filled in. */
interface RabbitmqSetup extends SharedSetup {
  readonly server: RabbitmqServer
  /** The queue of RabbitMQ. */
  readonly queue: string
  readonly runScript: RunScript<ScriptName>
  readonly consumerTimeoutMs: number
}

const optionNames: readonly (keyof RabbitmqBrokerOptions)[] = [
  ...(['connection', 'store', 'prefix', 'consumerTimeout'] as const),
  ...sharedOptionNames,
]

/**
 * Longest time (ms) for which a worker holds a job that waits for its rate. RabbitMQ ends the
 * channel of a worker that holds a message for half an hour, and with the channel all its runs.
 */
const maxHeldMs = 10_000

/** Time (ms) by which a message outlives its job, which is told to have expired before. */
const messageMarginMs = 600_000

/**
 * Delivers jobs by RabbitMQ, and keeps them in Redis. Install `amqplib` beside it.
 * @example
 * const broker = rabbitmqBroker({ connection: 'amqp://localhost', store: redisStore(redis) })
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function rabbitmqBroker(options: RabbitmqBrokerOptions): Broker {
  const setup = setUpRabbitmq(options)
  const table = new RedisJobTable({ bounds: setup, run: setup.runScript, writesJobs: true })
  return brokerFrom({
    ...setup,
    ...{ isShared: true, maxHeldMs },
    make: (report) => ({ table, transport: new RabbitmqTransport(setup, table, report) }),
  })
}

function setUpRabbitmq(options: RabbitmqBrokerOptions): RabbitmqSetup {
  knownFields(options, 'rabbitmqBroker', optionNames)
  const prefix = orDefault(options.prefix, 'sluice')
  if (typeof prefix !== 'string' || !/^[A-Za-z0-9._-]{1,100}$/.test(prefix)) {
    throw invalid({ option: 'prefix' }, prefix, "1 to 100 letters, digits, '.', '_' and '-'")
  }
  const shared = sharedSetup(options)
  return {
    ...shared,
    server: serverOf(options.connection),
    queue: `${prefix}.${shared.name}`,
    // All keys are in one slot of a Cluster.
    runScript: scriptsIn(withoutRegions(options.store), `{${prefix}:${shared.name}}:`),
    consumerTimeoutMs: durationMs(orDefault(options.consumerTimeout, '30m'), 'consumerTimeout'),
  }
}

function scriptsIn(store: Store | undefined, prefix: string): RunScript<ScriptName> {
  const scripts: StoreScripts | undefined = store?.scripts
  if (!scripts) {
    const what = 'a store in Redis: redisStore(client)'
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

class RabbitmqTransport implements Transport {
  readonly #setup: RabbitmqSetup
  readonly #table: RedisJobTable
  readonly #messages: MessageTable
  readonly #publisher: Publisher
  readonly #sweep: Sweep
  readonly #report: (error: unknown) => void

  constructor(setup: RabbitmqSetup, table: RedisJobTable, report: (error: unknown) => void) {
    const { server, queue, deadlineMs } = setup
    const messages = new MessageTable(setup.runScript)
    this.#setup = setup
    this.#table = table
    this.#messages = messages
    this.#report = report
    this.#publisher = new Publisher({ server, queue, messages, deadlineMs, onError: report })
    const publisher = this.#publisher
    this.#sweep = new Sweep({ table, messages, publisher, deadlineMs, onError: report })
  }

  /** Nothing is written while nothing can be delivered. */
  async ready(): Promise<void> {
    await this.#publisher.ready()
    this.#sweep.start()
  }

  async deliver({ id, enqueuedAt, expiresAt }: StoredJob): Promise<void> {
    const expiresMs = expiresAt === undefined ? undefined : expiresAt - enqueuedAt + messageMarginMs
    await this.#publisher.publish({ id, number: 1 }, { expiresMs })
  }

  async undo(job: StoredJob): Promise<void> {
    if (!job.record) await this.#table.endWaiting(job, 'withdrawn')
  }

  async redeliver({ id }: StoredJob, number: number): Promise<boolean> {
    this.#sweep.start()
    // The job waits again by now. Jobs that are not published are swept.
    await this.#publisher.publish({ id, number }).catch(this.#report)
    return true
  }

  work(terms: RunTerms, options: WorkOptions): BrokerWorker {
    this.#warnOfLongRuns(options)
    this.#sweep.start()
    const { server, queue } = this.#setup
    const messages = this.#messages
    const publisher = this.#publisher
    return new RabbitmqWorker({ terms, options, server, queue, messages, publisher })
  }

  async close(): Promise<void> {
    this.#sweep.stop()
    await this.#publisher.close()
  }

  #warnOfLongRuns({ timeoutMs = 0 }: WorkOptions): void {
    const { consumerTimeoutMs, name } = this.#setup
    if (timeoutMs + maxHeldMs <= consumerTimeoutMs) return
    warnOnce(
      `the queue '${name}': a run may take ${timeoutMs} ms, and a job wait ${maxHeldMs} ms for its rate; RabbitMQ takes it back after ${consumerTimeoutMs} ms. Lower the worker's timeout, or raise consumer_timeout in rabbitmq.conf and consumerTimeout of rabbitmqBroker`,
    )
  }
}
