import { SluiceError, withDeadline } from '@sluice/core'
import type { ConfirmChannel, Options } from 'amqplib'
import type { RunScript, SharedScript } from '../redis/scripts.ts'
import type { RabbitmqServer } from './connection.ts'
import { LastingChannel } from './lasting-channel.ts'

/** A message of a job. Only the newest number of a job counts. */
export interface Message {
  readonly id: string
  readonly number: number
}

export type ScriptName = SharedScript | `rabbitmq/${'published' | 'take' | 'overdue-messages'}`

interface PublisherOptions {
  readonly server: RabbitmqServer
  /** The queue that workers take messages from. */
  readonly queue: string
  readonly script: RunScript<ScriptName>
  /** Maximum time (ms) until the server confirms a message. */
  readonly deadlineMs: number
  readonly onError: (error: unknown) => void
}

const heartbeatSeconds = 10

/** Time (ms) for which an unused delay queue outlives its delay. */
const unusedMs = 600_000

/** Time (ms) after which a delay queue is declared again, so that it does not count as unused. */
const declaredMs = 60_000

/** Deliveries of a message that RabbitMQ allows: enough that our own count decides. */
const deliveryLimit = 1_000_000

/** Publishes messages, with publisher confirms, to durable queues. */
export class Publisher {
  readonly #options: PublisherOptions
  readonly #lasting: LastingChannel<ConfirmChannel>
  /** Time of the last declaration of each queue. */
  readonly #declared = new Map<string, number>()
  /** Messages that no queue accepted, until they are confirmed. */
  readonly #returned = new Set<string>()

  constructor(options: PublisherOptions) {
    this.#options = options
    this.#lasting = new LastingChannel({
      ...{ server: options.server, heartbeatSeconds, onError: options.onError },
      create: (connection) => connection.createConfirmChannel(),
      setUp: async (channel) => {
        this.#declared.clear()
        this.#returned.clear()
        channel.on('return', ({ properties }) => this.#returned.add(String(properties.messageId)))
        await declareQueue(channel, options.queue)
      },
    })
  }

  /**
   * Resolves when messages can be published.
   * @throws SluiceError if they cannot
   */
  async ready(): Promise<void> {
    await this.#lasting.ready()
  }

  /**
   * Resolves when the server has stored the message.
   * @param delayMs how long the message waits at most, perhaps in several steps
   * @param expiresMs time (ms) after which an untaken message is dropped
   */
  async publish(
    message: Message,
    { delayMs = 0, expiresMs }: { delayMs?: number; expiresMs?: number | undefined } = {},
  ): Promise<void> {
    const { deadlineMs, script, onError } = this.#options
    const late = () => new SluiceError('SLUICE_BROKER_FAILED', `no confirm within ${deadlineMs} ms`)
    await withDeadline(this.#publish(message, stepOf(delayMs), expiresMs), deadlineMs, late)
    // If this is lost, the job gets another message, and this one becomes stale.
    script('rabbitmq/published', { message: textOf(message) }).catch(onError)
  }

  /** Counts the messages that wait for a worker. */
  async backlog(): Promise<number> {
    const channel = await this.#lasting.ready()
    return (await declareQueue(channel, this.#options.queue)).messageCount
  }

  async close(): Promise<void> {
    await this.#lasting.close()
  }

  async #publish(message: Message, stepMs: number, expiresMs: number | undefined): Promise<void> {
    const channel = await this.#lasting.ready()
    const queue = stepMs === 0 ? this.#options.queue : await this.#delayQueue(channel, stepMs)
    const messageId = textOf(message)
    const options: Options.Publish = {
      ...{ messageId, persistent: true, mandatory: true, contentType: 'application/json' },
      ...(expiresMs === undefined ? {} : { expiration: expiresMs }),
    }
    await new Promise<void>((resolve, reject) => {
      const content = Buffer.from(JSON.stringify(message))
      channel.publish('', queue, content, options, (error: unknown) => {
        const wasReturned = this.#returned.delete(messageId)
        if (!error && !wasReturned) return resolve()
        // The queue was deleted: a new channel declares it again.
        if (wasReturned) this.#lasting.restart()
        const reason = wasReturned
          ? `there is no queue '${queue}'`
          : 'RabbitMQ did not accept a message'
        reject(new SluiceError('SLUICE_BROKER_FAILED', reason, { cause: error }))
      })
    })
  }

  async #delayQueue(channel: ConfirmChannel, stepMs: number): Promise<string> {
    const { queue } = this.#options
    const name = `${queue}.delay.${stepMs}`
    if (performance.now() - (this.#declared.get(name) ?? Number.NEGATIVE_INFINITY) > declaredMs) {
      await channel.assertQueue(name, {
        durable: true,
        arguments: {
          ...common,
          'x-message-ttl': stepMs,
          'x-expires': stepMs + unusedMs,
          'x-dead-letter-exchange': '',
          'x-dead-letter-routing-key': queue,
          'x-dead-letter-strategy': 'at-least-once',
        },
      })
      this.#declared.set(name, performance.now())
    }
    return name
  }
}

function textOf({ id, number }: Message): string {
  return `${id}:${number}`
}

/** A queue that is full under an operator's policy refuses messages instead of dropping some. */
const common = { 'x-queue-type': 'quorum', 'x-overflow': 'reject-publish' }

/** Declares the queue that workers take messages from. */
export async function declareQueue(
  channel: Pick<ConfirmChannel, 'assertQueue'>,
  queue: string,
): Promise<{ messageCount: number }> {
  return channel.assertQueue(queue, {
    durable: true,
    arguments: { ...common, 'x-delivery-limit': deliveryLimit },
  })
}

/**
 * Delays (ms) that have a queue. All messages of one queue wait for the same time, so none waits
 * behind a later one.
 */
const steps = [
  ...[100, 500, 1_000, 2_000, 5_000, 10_000, 30_000],
  ...[60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000],
]

/** Share of a delay by which one step may exceed it. */
const tolerance = 0.1

/**
 * Chooses the step for a delay. A slightly longer step ends the wait; otherwise the wait continues
 * after the longest step within the delay.
 * @returns ms, 0 for no delay
 */
export function stepOf(delayMs: number): number {
  if (delayMs <= 0) return 0
  const [shortest = 0] = steps
  const last = steps.find((step) => step >= delayMs && step <= delayMs * (1 + tolerance))
  return last ?? steps.findLast((step) => step <= delayMs) ?? shortest
}
