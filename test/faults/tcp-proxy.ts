import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { monotonicMs } from './timing.ts'

/** What is done to the traffic; nothing where a field is missing. A reply is what the server sends in one piece. */
export interface Disturbance {
  /** How long what clients send is held back. */
  readonly requestDelayMs?: number
  /** How long what the server sends is held back. */
  readonly replyDelayMs?: number
  /** Passes on something else, where each character is a byte. */
  changed?(reply: string): string
  /** Holds back every n-th reply of a connection, and what follows it, for a time. */
  readonly stall?: { readonly every: number; readonly forMs: number }
  /** Ends a connection in the middle of its n-th reply. */
  readonly cutEvery?: number
}

export type TcpProxy = Awaited<ReturnType<typeof startTcpProxy>>

interface Connection {
  readonly client: Socket
  readonly server: Socket
  replies: number
}

/**
 * Starts a proxy between clients and a server on 127.0.0.1, which does to the connections what networks do.
 * @param port where to listen; 0: anywhere
 */
export async function startTcpProxy(serverPort: number, port = 0) {
  const open = new Set<Connection>()
  let disturbance: Disturbance = {}
  const listener = createServer({ noDelay: true }, accept)
  const ownPort = await listen(listener, port)

  function accept(client: Socket): void {
    const server = connect({ host: '127.0.0.1', port: serverPort, noDelay: true })
    const connection: Connection = { client, server, replies: 0 }
    open.add(connection)
    const toServer = new Lane(server)
    const toClient = new Lane(client)
    client.on('data', (chunk) => toServer.send(chunk, disturbance.requestDelayMs ?? 0))
    server.on('data', (chunk) => reply(connection, toClient, chunk))
    // A server that refuses is one that resets, to the client.
    server.on('error', () => client.resetAndDestroy())
    client.on('error', () => server.destroy())
    server.on('close', () => client.destroy())
    client.on('close', () => {
      server.destroy()
      open.delete(connection)
    })
  }

  function reply(connection: Connection, toClient: Lane, chunk: Buffer): void {
    connection.replies += 1
    const { replyDelayMs = 0, stall, cutEvery, changed } = disturbance
    if (cutEvery !== undefined && connection.replies % cutEvery === 0) {
      connection.client.end(chunk.subarray(0, Math.ceil(chunk.length / 2)))
      connection.server.destroy()
      return
    }
    const isStalled = stall !== undefined && connection.replies % stall.every === 0
    const sent = changed ? Buffer.from(changed(chunk.toString('latin1')), 'latin1') : chunk
    toClient.send(sent, replyDelayMs + (isStalled ? stall.forMs : 0))
  }

  function reset(): void {
    for (const { client } of open) client.resetAndDestroy()
  }

  async function close(): Promise<void> {
    reset()
    if (!listener.listening) return
    listener.close()
    await once(listener, 'close')
  }

  return {
    port: ownPort,
    get connections() {
      return open.size
    },
    /** From now on, instead of what was before. */
    disturb(next: Disturbance) {
      disturbance = next
    },
    reset,
    /** Resets all connections, and refuses new ones until `accept`. */
    refuse: close,
    accept: async () => void (await listen(listener, ownPort)),
    close,
    [Symbol.asyncDispose]: close,
  }
}

async function listen(listener: Server, port: number): Promise<number> {
  await once(listener.listen(port, '127.0.0.1'), 'listening')
  return (listener.address() as AddressInfo).port
}

/** One direction of a connection: what is sent arrives in order, however long each piece is held back. */
class Lane {
  readonly #to: Socket
  readonly #held: Buffer[] = []
  #lastDueAt = 0

  constructor(to: Socket) {
    this.#to = to
  }

  send(chunk: Buffer, delayMs: number): void {
    const now = monotonicMs()
    this.#lastDueAt = Math.max(this.#lastDueAt, now + delayMs)
    if (this.#lastDueAt <= now && this.#held.length === 0) {
      this.#write(chunk)
      return
    }
    this.#held.push(chunk)
    setTimeout(() => this.#writeNext(), this.#lastDueAt - now)
  }

  #writeNext(): void {
    const chunk = this.#held.shift()
    if (chunk) this.#write(chunk)
  }

  #write(chunk: Buffer): void {
    if (this.#to.writable) this.#to.write(chunk)
  }
}
