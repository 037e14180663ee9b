import { endsWithin, SluiceError, sleep } from '@sluice/core'
import type { Channel, ChannelModel } from 'amqplib'
import { connectionFailure, type RabbitmqServer } from './connection.ts'

interface LastingChannelOptions<C extends Channel> {
  readonly server: RabbitmqServer
  readonly heartbeatSeconds: number
  create(connection: ChannelModel): Promise<C>
  /** Prepares a new channel: declares queues, or subscribes. */
  setUp(channel: C): Promise<void>
  /** Called when a channel prepared by `setUp` is lost. */
  onLost?(channel: C): void
  onError(error: unknown): void
}

/** Time (ms) that a connection has to close gracefully. */
const farewellMs = 1_000

/** Delays (ms) between attempts to connect: exponential, half of each random. */
const minDelayMs = 200
const maxDelayMs = 5_000

/**
 * A channel on its own connection, which is reopened after a loss. Unacknowledged messages of the
 * lost channel are delivered again, so its users must know about the loss.
 */
export class LastingChannel<C extends Channel> {
  readonly #options: LastingChannelOptions<C>
  readonly #stop = new AbortController()
  readonly #waiting = new Set<() => void>()
  #connection: ChannelModel | undefined
  #channel: C | undefined
  #failure: SluiceError | undefined
  #blockedBy: string | undefined
  #life: Promise<void> | undefined

  constructor(options: LastingChannelOptions<C>) {
    this.#options = options
  }

  /** The channel, if there is one. */
  get current(): C | undefined {
    return this.#channel
  }

  /** Opens the channel, and keeps it open. */
  start(): void {
    this.#life ??= this.#live()
  }

  /**
   * Resolves to the channel, after the first attempt to open it.
   * @throws SluiceError at once if the last attempt failed, or while the server blocks publishers
   */
  async ready(): Promise<C> {
    this.start()
    if (!this.#channel && !this.#failure) {
      await new Promise<void>((resolve) => this.#waiting.add(resolve))
    }
    const { where } = this.#options.server
    if (this.#blockedBy !== undefined) {
      const message = `${where} accepts no messages at the moment: ${this.#blockedBy}`
      throw new SluiceError('SLUICE_BROKER_FAILED', message)
    }
    if (this.#channel) return this.#channel
    throw this.#failure ?? new SluiceError('SLUICE_BROKER_CLOSED', 'the broker was closed')
  }

  /** Drops the connection, to open another one. */
  restart(): void {
    if (this.#connection) void endConnection(this.#connection)
  }

  async close(): Promise<void> {
    this.#stop.abort()
    this.#wake()
    if (this.#connection) await endConnection(this.#connection)
    await this.#life
  }

  async #live(): Promise<void> {
    let attempts = 0
    while (!this.#stop.signal.aborted) {
      try {
        const lost = await this.#open()
        attempts = 0
        await lost
      } catch (error) {
        this.#lose(connectionFailure(error, this.#options.server.where))
      }
      if (this.#stop.signal.aborted) return
      this.#options.onError(this.#failure)
      const delayMs = Math.min(maxDelayMs, minDelayMs * 2 ** attempts)
      attempts += 1
      await sleep((delayMs * (1 + Math.random())) / 2, this.#stop.signal)
    }
  }

  /** Resolves, once the channel is ready, to a promise for its loss. */
  async #open(): Promise<Promise<void>> {
    const { server, heartbeatSeconds, create, setUp } = this.#options
    const connection = await server.connect(heartbeatSeconds)
    this.#connection = connection
    let cause: unknown
    const lost = new Promise<void>((resolve) => {
      connection.on('error', (error) => {
        cause ??= error
      })
      connection.once('close', (error?: unknown) => {
        cause ??= error
        resolve()
      })
      connection.on('blocked', (reason) => {
        this.#blockedBy = reason
        this.#options.onError(connectionFailure(`blocked: ${reason}`, server.where))
      })
      connection.on('unblocked', () => {
        this.#blockedBy = undefined
      })
    })
    if (this.#stop.signal.aborted) {
      await endConnection(connection)
      return lost
    }
    try {
      const channel = await create(connection)
      const channelLost = new Promise<void>((resolve) => {
        channel.on('error', (error) => {
          cause ??= error
        })
        channel.once('close', resolve)
      })
      await setUp(channel)
      this.#channel = channel
      this.#failure = undefined
      this.#wake()
      // If the server closes the channel, the connection is dropped too, so that there is one way
      // to reconnect.
      return Promise.race([lost, channelLost]).then(() => {
        this.#lose(connectionFailure(cause ?? 'the connection was lost', server.where))
        return endConnection(connection)
      })
    } catch (error) {
      await endConnection(connection)
      throw cause ?? error
    }
  }

  #lose(failure: SluiceError): void {
    const lost = this.#channel
    this.#failure = failure
    this.#channel = undefined
    this.#connection = undefined
    this.#blockedBy = undefined
    this.#wake()
    if (lost) this.#options.onLost?.(lost)
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve()
    this.#waiting.clear()
  }
}

/** Closes the connection gracefully; without a reply, destroys the socket. Never rejects. */
async function endConnection(connection: ChannelModel): Promise<void> {
  // A closed connection throws.
  const farewell = Promise.resolve()
    .then(() => connection.close())
    .catch(() => undefined)
  if (await endsWithin(farewell, farewellMs)) return
  const { connection: inner }: { connection: object } = connection
  if (!('stream' in inner)) return
  const { stream } = inner
  if (typeof stream === 'object' && stream !== null && 'destroy' in stream) {
    if (typeof stream.destroy === 'function') stream.destroy()
  }
}
