import { randomUUID } from 'node:crypto'
import { maxTimerMs } from '@sluice/core'
import type { Channel, ConsumeMessage } from 'amqplib'
import { type BrokerWorker, LeaseLost, type WorkOptions } from '../../broker.ts'
import { JobRuns, type RunTerms } from '../job-runs.ts'
import type { PutBack, TakenJob } from '../job-table.ts'
import { parsed, readJob } from '../redis/job-fields.ts'
import { type RunScript, texts } from '../redis/scripts.ts'
import type { RabbitmqServer } from './connection.ts'
import { LastingChannel } from './lasting-channel.ts'
import { declareQueue, type Message, type Publisher, type ScriptName } from './publisher.ts'

export interface RabbitmqWork {
  readonly terms: RunTerms
  readonly options: WorkOptions
  readonly server: RabbitmqServer
  readonly queue: string
  readonly script: RunScript<ScriptName>
  readonly publisher: Publisher
}

/** A message for a job to run, for a job that is due later, or a stale message. */
type Taken =
  /** `wasRunning`: another run had the job, and its worker was lost. */
  | { readonly outcome: 'run'; readonly job: TakenJob; readonly wasRunning: boolean }
  | { readonly outcome: 'early'; readonly next: Message; readonly delayMs: number }
  | { readonly outcome: 'stale' }

/** Runs jobs whose ids RabbitMQ delivers. */
export class RabbitmqWorker implements BrokerWorker {
  readonly #work: RabbitmqWork
  readonly #runs: JobRuns
  readonly #lasting: LastingChannel<Channel>
  #consumerTag = ''
  /** Subscribes again after a pause, during which messages stay in the queue. */
  #resuming: NodeJS.Timeout | undefined
  /** The runs whose messages came through each channel, until it is lost. */
  readonly #byChannel = new Map<Channel, Set<AbortController>>()

  constructor(work: RabbitmqWork) {
    this.#work = work
    this.#runs = new JobRuns(work.terms)
    const { server, queue, options } = work
    const { onError } = work.terms
    this.#lasting = new LastingChannel({
      ...{ server, onError, heartbeatSeconds: heartbeatOf(options.leaseMs) },
      create: (connection) => connection.createChannel(),
      setUp: async (channel) => {
        // RabbitMQ 3.10 drops connections that declare one new queue at the same time.
        await work.publisher.ready().catch(() => undefined)
        await declareQueue(channel, queue)
        await channel.prefetch(options.concurrency)
        this.#byChannel.set(channel, new Set())
        await this.#subscribe(channel)
      },
      onLost: (channel) => this.#lose(channel),
    })
    this.#lasting.start()
  }

  async close(): Promise<void> {
    await this.#runs.close(() => this.#unsubscribe())
    await this.#lasting.close()
  }

  abandon(): void {
    this.#runs.abandon()
    void this.#lasting.close()
  }

  async #subscribe(channel: Channel): Promise<void> {
    this.#endPause()
    const receive = (message: ConsumeMessage | null): void => this.#receive(channel, message)
    const { consumerTag } = await channel.consume(this.#work.queue, receive)
    this.#consumerTag = consumerTag
  }

  async #unsubscribe(): Promise<void> {
    this.#endPause()
    try {
      await this.#lasting.current?.cancel(this.#consumerTag)
    } catch {
      // A lost channel delivers nothing.
    }
  }

  /** Pauses delivery. Messages in transit still arrive. */
  #pause(delayMs: number): void {
    if (this.#runs.isClosing || this.#resuming) return
    const channel = this.#lasting.current
    void this.#unsubscribe()
    const resume = (): void => {
      // A new channel has already subscribed.
      if (!channel || channel !== this.#lasting.current) return
      this.#subscribe(channel).catch(this.#work.terms.onError)
    }
    this.#resuming = setTimeout(resume, Math.min(delayMs, maxTimerMs)).unref()
  }

  #endPause(): void {
    clearTimeout(this.#resuming)
    this.#resuming = undefined
  }

  #receive(channel: Channel, message: ConsumeMessage | null): void {
    if (!message) {
      // The server ended the subscription: the queue was deleted.
      this.#lasting.restart()
      return
    }
    if (this.#runs.isClosing) {
      give(() => channel.nack(message))
      return
    }
    void this.#runs.track(this.#process(channel, message))
  }

  async #process(channel: Channel, received: ConsumeMessage): Promise<void> {
    const { options, terms } = this.#work
    let answer = (): void => channel.ack(received)
    const message = messageIn(received)
    if (!message) {
      terms.onError(new Error('a message that is not from Sluice was dropped'))
      return give(answer)
    }
    const token = randomUUID()
    const taken = await this.#runs.insist(() => this.#take(message, token))
    if (!taken) return
    if (taken.outcome === 'early') await this.#publish(taken.next, taken.delayMs)
    if (taken.outcome !== 'run') return give(answer)
    if (taken.wasRunning) options.onStalled(message.id)
    const controller = new AbortController()
    const siblings = this.#byChannel.get(channel)?.add(controller)
    // The channel may have been lost meanwhile.
    if (!siblings) controller.abort(channelLost())
    const redeliver = async (back: PutBack, number: number): Promise<void> => {
      const delayMs = back.outcome === 'returned' ? 0 : back.delayMs
      if (back.outcome === 'postponed' && back.pausesWorker) this.#pause(delayMs)
      if (number === 0) answer = () => channel.nack(received)
      else await this.#publish({ id: message.id, number }, delayMs)
    }
    const isOver = await this.#runs.run(taken.job, controller, redeliver)
    siblings?.delete(controller)
    if (isOver) give(answer)
  }

  /** Takes the job of a message for a run. */
  async #take({ id, number }: Message, token: string): Promise<Taken> {
    const args = { job: { id }, number, token }
    const [outcome, first = '', ...rest] = texts(await this.#work.script('rabbitmq/take', args))
    const [attempts = 0, interrupted = 0, began, stop, was] = rest.map(Number)
    if (outcome === 'early') {
      return { outcome, next: { id, number: Number(first) }, delayMs: attempts }
    }
    if (outcome !== 'run') return { outcome: 'stale' }
    const notes = { token, attempts, interrupted, hasBegun: began === 1, isToStop: stop === 1 }
    const job = readJob(id, parsed(first))
    return { outcome, job: { job, ...notes }, wasRunning: was === 1 }
  }

  /** Publishes the message of a job that is put back. If this fails, a sweep publishes it later. */
  async #publish(message: Message, delayMs: number): Promise<void> {
    await this.#work.publisher.publish(message, { delayMs }).catch(this.#work.terms.onError)
  }

  /** Stops the runs whose messages are delivered again, since their channel is lost. */
  #lose(channel: Channel): void {
    for (const controller of this.#byChannel.get(channel) ?? []) controller.abort(channelLost())
    this.#byChannel.delete(channel)
  }
}

function channelLost(): LeaseLost {
  return new LeaseLost('the channel to RabbitMQ was lost: the job runs elsewhere')
}

/** Acknowledges a message. On a lost channel this throws: the message is delivered again. */
function give(answer: () => void): void {
  try {
    answer()
  } catch {
    // The job's record then determines what the message means.
  }
}

/** A silent worker loses its jobs after two or three heartbeats, that is within two lease times. */
function heartbeatOf(leaseMs: number): number {
  return Math.min(60, Math.max(1, Math.floor(leaseMs / 2_000)))
}

function messageIn({ content }: ConsumeMessage): Message | undefined {
  try {
    const { id, number }: Partial<Message> = JSON.parse(content.toString())
    if (typeof id !== 'string' || typeof number !== 'number') return undefined
    return { id, number }
  } catch {
    // Another process has published it.
    return undefined
  }
}
