import { maxTimerMs } from '@sluice/core'
import type { Channel, ConsumeMessage } from 'amqplib'

interface SubscriptionOptions {
  readonly queue: string
  /** Returns the channel of the worker, while there is one. */
  current(): Channel | undefined
  /** Receives a message, or `null` when the server ends the subscription. */
  receive(channel: Channel, message: ConsumeMessage | null): void
  onError(error: unknown): void
}

/** The subscription of a worker to its queue. In a pause the messages stay where they are. */
export class Subscription {
  readonly #options: SubscriptionOptions
  #consumerTag = ''
  /** Subscribes again after a pause. */
  #resuming: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: SubscriptionOptions) {
    this.#options = options
  }

  /** Subscribes on a new channel, or after a pause. */
  async open(channel: Channel): Promise<void> {
    this.#endPause()
    const { queue, receive } = this.#options
    const { consumerTag } = await channel.consume(queue, (message) => receive(channel, message))
    this.#consumerTag = consumerTag
  }

  /** Receives nothing for a time. Messages that are under way arrive all the same. */
  pause(delayMs: number): void {
    if (this.#isClosed || this.#resuming) return
    const channel = this.#options.current()
    void this.#cancel()
    const resume = (): void => {
      // A new channel has subscribed already.
      if (!channel || channel !== this.#options.current()) return
      this.open(channel).catch(this.#options.onError)
    }
    this.#resuming = setTimeout(resume, Math.min(delayMs, maxTimerMs)).unref()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#endPause()
    await this.#cancel()
  }

  async #cancel(): Promise<void> {
    try {
      await this.#options.current()?.cancel(this.#consumerTag)
    } catch {
      // A lost channel delivers nothing any more.
    }
  }

  #endPause(): void {
    clearTimeout(this.#resuming)
    this.#resuming = undefined
  }
}
