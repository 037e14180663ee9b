import { randomUUID } from 'node:crypto'
import { errorText, sleep } from '@sluice/core'
import type { Channel, ConsumeMessage } from 'amqplib'
import {
  type BrokerWorker,
  type Delivery as DeliveryNotes,
  LeaseLost,
  type RunJob,
  type Settlement,
  type WorkOptions,
} from '../../broker.ts'
import type { StoredJob } from '../redis/stored-job.ts'
import type { RabbitmqServer } from './connection.ts'
import type { JobTable, TakenJob } from './job-table.ts'
import { LastingChannel } from './lasting-channel.ts'
import { type Delivery, declareQueue, type Publisher } from './publisher.ts'
import { Subscription } from './subscription.ts'

/** Delay (ms) after an error that is not the job's: Redis was away, full, or loading. */
const infrastructureRetryMs = 1_000

const cancellationPollMs = 500

export interface RabbitmqWork {
  readonly server: RabbitmqServer
  readonly queue: string
  readonly jobs: JobTable
  readonly publisher: Publisher
  readonly onError: (error: unknown) => void
  readonly run: RunJob
  readonly options: WorkOptions
}

/** A run under way. */
interface Run {
  readonly job: StoredJob
  /** Marks the job in Redis: the settlement of a run without the mark is dropped. */
  readonly token: string
  readonly channel: Channel
  readonly message: ConsumeMessage
  readonly controller: AbortController
  /** True once the handler was called. */
  hasBegun: boolean
}

/** Runs jobs as RabbitMQ delivers their ids. */
export class RabbitmqWorker implements BrokerWorker {
  readonly #work: RabbitmqWork
  readonly #lasting: LastingChannel<Channel>
  readonly #subscription: Subscription
  readonly #runs = new Set<Run>()
  readonly #processing = new Set<Promise<void>>()
  readonly #lostChannels = new WeakSet<Channel>()
  readonly #timer: NodeJS.Timeout
  readonly #abandoned: Promise<void>
  readonly #stop = new AbortController()
  #letGo: () => void = () => undefined
  #isClosing = false
  #isPolling = false

  constructor(work: RabbitmqWork) {
    this.#work = work
    this.#abandoned = new Promise((resolve) => {
      this.#letGo = resolve
    })
    const { server, queue, options, onError } = work
    this.#subscription = new Subscription({
      ...{ queue, onError, current: () => this.#lasting.current },
      receive: (channel, message) => this.#receive(channel, message),
    })
    this.#lasting = new LastingChannel({
      ...{ server, onError, heartbeatSeconds: heartbeatOf(options.leaseMs) },
      create: (connection) => connection.createChannel(),
      setUp: async (channel) => {
        // RabbitMQ 3.10 drops connections that declare one new queue at the same time.
        await work.publisher.ready().catch(() => undefined)
        await declareQueue(channel, queue)
        await channel.prefetch(options.concurrency)
        await this.#subscription.open(channel)
      },
      onLost: (channel) => this.#loseRuns(channel),
    })
    this.#lasting.start()
    this.#timer = setInterval(() => void this.#watchRuns(), cancellationPollMs).unref()
  }

  async close(): Promise<void> {
    this.#isClosing = true
    const settled = this.#subscription.close().then(() => this.#settled())
    await Promise.race([settled, this.#abandoned])
    clearInterval(this.#timer)
    await this.#lasting.close()
  }

  abandon(): void {
    this.#stop.abort()
    this.#letGo()
    void this.#lasting.close()
  }

  async #settled(): Promise<void> {
    while (this.#processing.size > 0) await Promise.all(this.#processing)
  }

  #receive(channel: Channel, message: ConsumeMessage | null): void {
    if (!message) {
      // The server has ended the subscription: somebody has deleted the queue.
      this.#lasting.restart()
      return
    }
    if (this.#isClosing) {
      give(() => channel.nack(message))
      return
    }
    const processing = this.#process(channel, message)
    this.#processing.add(processing)
    void processing.finally(() => this.#processing.delete(processing))
  }

  async #process(channel: Channel, message: ConsumeMessage): Promise<void> {
    const { jobs, options } = this.#work
    const acknowledge = (): void => give(() => channel.ack(message))
    const delivery = deliveryOf(message)
    if (!delivery) {
      this.#work.onError(new Error('a message that is none of Sluice was dropped'))
      return acknowledge()
    }
    const token = randomUUID()
    const taken = await this.#insist(() => jobs.take(delivery, token))
    if (!taken) return
    if (taken.outcome === 'stale') return acknowledge()
    if (taken.outcome === 'early') {
      await this.#publish(taken.next, taken.delayMs)
      return acknowledge()
    }
    if (taken.wasRunning) options.onStalled(delivery.id)
    const controller = new AbortController()
    const run: Run = { job: taken.job, token, channel, message, controller, hasBegun: false }
    this.#runs.add(run)
    // The channel may have been lost meanwhile.
    if (this.#lostChannels.has(channel)) this.#lose(run)
    try {
      await this.#settle(run, await this.#run(run, taken))
    } finally {
      this.#runs.delete(run)
    }
  }

  async #run(run: Run, taken: TakenJob): Promise<Settlement> {
    if (taken.isToStop) return { outcome: 'cancelled' }
    const { jobs, onError } = this.#work
    const { retentionMs: _, record: __, ...job } = run.job
    const notes: DeliveryNotes = {
      ...{ interrupted: taken.interrupted, hasBegun: taken.hasBegun },
      async begin() {
        try {
          if (!(await jobs.records.begin(run.job, 1, run.token))) {
            throw new LeaseLost('the job runs elsewhere by now, or has ended')
          }
          run.hasBegun = true
        } catch (error) {
          onError(error)
          throw error
        }
      },
    }
    try {
      return await this.#work.run(
        { ...job, attempt: taken.attempts + 1 },
        run.controller.signal,
        notes,
      )
    } catch (error) {
      return { outcome: 'dead', error: errorText(error) }
    }
  }

  async #settle(run: Run, settlement: Settlement): Promise<void> {
    const { job, token, hasBegun, channel, message } = run
    const { outcome } = settlement
    if (outcome !== 'returned' && outcome !== 'postponed' && outcome !== 'retry') {
      const isEnded = await this.#insist(() => this.#work.jobs.end(job, token, settlement))
      if (isEnded) settlement.onSettled?.()
      if (isEnded !== undefined) give(() => channel.ack(message))
      return
    }
    const uncounts = hasBegun && outcome !== 'retry'
    const back = await this.#insist(() =>
      this.#work.jobs.putBack(job, token, { settlement, uncounts }),
    )
    if (back === undefined || back === 'lost') return give(() => channel.ack(message))
    settlement.onSettled?.()
    if (outcome === 'postponed' && settlement.pausesWorker)
      this.#subscription.pause(settlement.delayMs)
    if (back === 'same') return give(() => channel.nack(message))
    await this.#publish(back, 'delayMs' in settlement ? settlement.delayMs : 0)
    give(() => channel.ack(message))
  }

  /** Publishes a message of a job that is put back. A job that fails here is swept later. */
  async #publish(delivery: Delivery, delayMs: number): Promise<void> {
    try {
      await this.#work.publisher.publish(delivery, { delayMs })
      await this.#work.jobs.published(delivery)
    } catch (error) {
      this.#work.onError(error)
    }
  }

  /** Repeats a step until Redis carries it out. `undefined` once nobody waits for it any more. */
  async #insist<T>(step: () => Promise<T>): Promise<T | undefined> {
    for (;;) {
      try {
        return await step()
      } catch (error) {
        this.#work.onError(error)
        if (this.#stop.signal.aborted) return undefined
        await sleep(infrastructureRetryMs, this.#stop.signal)
      }
    }
  }

  #loseRuns(channel: Channel): void {
    this.#lostChannels.add(channel)
    for (const run of this.#runs) {
      if (run.channel === channel) this.#lose(run)
    }
  }

  /** Stops a run whose message is delivered again, since its channel is lost. */
  #lose({ controller }: Run): void {
    controller.abort(new LeaseLost('the channel to RabbitMQ was lost: the job runs elsewhere'))
  }

  /** All in one go. */
  async #watchRuns(): Promise<void> {
    if (this.#isPolling || this.#runs.size === 0) return
    this.#isPolling = true
    try {
      const runs = [...this.#runs]
      const told = await this.#work.jobs.watch(runs.map(({ job, token }) => [job.id, token]))
      for (const [index, { controller }] of runs.entries()) {
        if (told[index] === 'lost') controller.abort(new LeaseLost('the job runs elsewhere by now'))
        if (told[index] !== 'stop') continue
        controller.abort(new DOMException('the job was cancelled', 'AbortError'))
      }
    } catch (error) {
      this.#work.onError(error)
    } finally {
      this.#isPolling = false
    }
  }
}

/** Answers for a message. On a lost channel that throws: the message is delivered again. */
function give(answer: () => void): void {
  try {
    answer()
  } catch {
    // The job's record then tells the meaning of the message.
  }
}

/** A silent worker loses its jobs after two or three heartbeats, so within its lease or two. */
function heartbeatOf(leaseMs: number): number {
  return Math.min(60, Math.max(1, Math.floor(leaseMs / 2_000)))
}

function deliveryOf({ content }: ConsumeMessage): Delivery | undefined {
  try {
    const { id, number }: Partial<Delivery> = JSON.parse(content.toString())
    if (typeof id !== 'string' || typeof number !== 'number') return undefined
    return { id, number }
  } catch {
    // Somebody else has published it.
    return undefined
  }
}
