import { randomUUID } from 'node:crypto'
import type { Channel, ConsumeMessage } from 'amqplib'
import { type BrokerWorker, LeaseLost, type WorkOptions } from '../../broker.ts'
import { JobRuns, type RunTerms } from '../job-runs.ts'
import type { PutBack } from '../job-table.ts'
import type { RabbitmqServer } from './connection.ts'
import { LastingChannel } from './lasting-channel.ts'
import type { Message, MessageTable } from './message-table.ts'
import { declareQueue, type Publisher } from './publisher.ts'
import { Subscription } from './subscription.ts'

export interface RabbitmqWork {
  readonly terms: RunTerms
  readonly options: WorkOptions
  readonly server: RabbitmqServer
  readonly queue: string
  readonly messages: MessageTable
  readonly publisher: Publisher
}

/** Runs jobs as RabbitMQ delivers their ids. */
export class RabbitmqWorker implements BrokerWorker {
  readonly #work: RabbitmqWork
  readonly #runs: JobRuns
  readonly #lasting: LastingChannel<Channel>
  readonly #subscription: Subscription
  /** The runs whose messages came by each channel, until it is lost. */
  readonly #byChannel = new Map<Channel, Set<AbortController>>()

  constructor(work: RabbitmqWork) {
    this.#work = work
    this.#runs = new JobRuns(work.terms)
    const { server, queue, options } = work
    const { onError } = work.terms
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
        this.#byChannel.set(channel, new Set())
        await this.#subscription.open(channel)
      },
      onLost: (channel) => this.#lose(channel),
    })
    this.#lasting.start()
  }

  async close(): Promise<void> {
    await this.#runs.close(() => this.#subscription.close())
    await this.#lasting.close()
  }

  abandon(): void {
    this.#runs.abandon()
    void this.#lasting.close()
  }

  #receive(channel: Channel, message: ConsumeMessage | null): void {
    if (!message) {
      // The server has ended the subscription: somebody has deleted the queue.
      this.#lasting.restart()
      return
    }
    if (this.#runs.isClosing) {
      give(() => channel.nack(message))
      return
    }
    this.#runs.track(this.#process(channel, message))
  }

  async #process(channel: Channel, received: ConsumeMessage): Promise<void> {
    const { messages, options, terms } = this.#work
    let answer = (): void => channel.ack(received)
    const message = messageIn(received)
    if (!message) {
      terms.onError(new Error('a message that is none of Sluice was dropped'))
      return give(answer)
    }
    const token = randomUUID()
    const taken = await this.#runs.insist(() => messages.take(message, token))
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
      if (back.outcome === 'postponed' && back.pausesWorker) this.#subscription.pause(delayMs)
      if (number === 0) answer = () => channel.nack(received)
      else await this.#publish({ id: message.id, number }, delayMs)
    }
    const isOver = await this.#runs.run(taken.job, controller, redeliver)
    siblings?.delete(controller)
    if (isOver) give(answer)
  }

  /** Publishes a message of a job that is put back. A job that fails here is swept later. */
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

function messageIn({ content }: ConsumeMessage): Message | undefined {
  try {
    const { id, number }: Partial<Message> = JSON.parse(content.toString())
    if (typeof id !== 'string' || typeof number !== 'number') return undefined
    return { id, number }
  } catch {
    // Somebody else has published it.
    return undefined
  }
}
