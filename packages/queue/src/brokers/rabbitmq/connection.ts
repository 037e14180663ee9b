import { errorText, invalid, SluiceError } from '@sluice/core'
import type { ChannelModel } from 'amqplib'

/** The part of amqplib that Sluice uses, loaded on first use because it is an optional peer. */
type Amqplib = typeof import('amqplib')

/** A RabbitMQ server. */
export interface RabbitmqServer {
  /** The server's address for messages, without the password. */
  readonly where: string
  /** Opens a connection. RabbitMQ closes a connection that misses two or three heartbeats. */
  connect(heartbeatSeconds: number): Promise<ChannelModel>
}

const legal =
  'an amqp:// or amqps:// URL, the options of an amqplib connection, or a function that creates a connection'

/** Maximum time (ms) for opening a connection: a frozen server accepts it but never replies. */
const openMs = 10_000

const socketOptions = { timeout: openMs, noDelay: true }

/** @throws SluiceError if the option has no known form */
export function serverOf(connection: unknown): RabbitmqServer {
  if (typeof connection === 'function') {
    return { where: 'RabbitMQ', connect: async () => made(await connection()) }
  }
  if (typeof connection === 'string' && URL.canParse(connection)) return byUrl(new URL(connection))
  if (typeof connection === 'object' && connection !== null && !isConnection(connection)) {
    return byOptions({ ...connection })
  }
  throw invalid({ option: 'connection' }, shown(connection), legal)
}

function byUrl(url: URL): RabbitmqServer {
  if (url.protocol !== 'amqp:' && url.protocol !== 'amqps:') {
    throw invalid({ option: 'connection' }, shown(url.href), legal)
  }
  return {
    where: `RabbitMQ at ${shown(url.href)}`,
    async connect(heartbeat) {
      const asked = new URL(url)
      if (!asked.searchParams.has('heartbeat')) {
        asked.searchParams.set('heartbeat', String(heartbeat))
      }
      return (await loadAmqplib()).connect(asked.href, { ...socketOptions })
    },
  }
}

function byOptions(options: Readonly<Record<string, unknown>>): RabbitmqServer {
  const { protocol = 'amqp', hostname = 'localhost', port = '', vhost = '/' } = options
  return {
    where: `RabbitMQ at ${protocol}://${hostname}:${port}, virtual host '${vhost}'`,
    async connect(heartbeat) {
      const asked = { heartbeat, ...options, hostname: String(hostname) }
      return (await loadAmqplib()).connect(asked, { ...socketOptions })
    },
  }
}

function made(connection: unknown): ChannelModel {
  if (isConnection(connection)) return connection
  const what = 'a function that creates a connection, such as () => amqplib.connect(url, { ca })'
  throw invalid({ option: 'connection()' }, typeof connection, what)
}

function isConnection(value: unknown): value is ChannelModel {
  return typeof value === 'object' && value !== null && 'createConfirmChannel' in value
}

/** Describes a connection without its password. */
function shown(connection: unknown): unknown {
  if (typeof connection !== 'string') return connection
  return connection.replace(/\/\/[^@/]*@/, '//')
}

async function loadAmqplib(): Promise<Amqplib> {
  try {
    return await import('amqplib')
  } catch (cause) {
    const message = 'rabbitmqBroker needs amqplib 2: npm install amqplib'
    throw new SluiceError('SLUICE_BROKER_FAILED', message, { cause })
  }
}

/** Known errors of servers and sockets, each with its fix. */
const hints: readonly (readonly [RegExp, string])[] = [
  [
    /inequivalent arg/,
    'the queue exists with other arguments: delete it, or set another name or prefix',
  ],
  [
    /NOT_ALLOWED|access to vhost|Expected ConnectionOpenOk/,
    'the user has no permissions in the virtual host, or the virtual host does not exist',
  ],
  [
    /ACCESS[_-]REFUSED.*(?:login|PLAIN|AMQPLAIN)|Handshake terminated.*403/i,
    'check the user name and the password',
  ],
  [
    /ACCESS[_-]REFUSED/i,
    'the user needs configure, write and read permissions for the queues of this broker',
  ],
  [
    /certificate|self.signed/i,
    'for your own certificate, set connection to () => amqplib.connect(url, { ca })',
  ],
  [/SSL|TLS|EPROTO|wrong version number/i, 'the port does not use TLS, or uses another version'],
  [/ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ETIMEDOUT/, 'check that the server is running'],
  [
    /Socket closed abruptly during opening handshake/,
    'check the port of RabbitMQ, and use TLS only with amqps://',
  ],
]

/** Creates a connection error whose message includes the fix. */
export function connectionFailure(error: unknown, where: string): SluiceError {
  if (error instanceof SluiceError) return error
  const text = errorText(error)
  const hint = hints.find(([pattern]) => pattern.test(text))?.[1]
  const message = `${where}: ${text}${hint ? ` (${hint})` : ''}`
  return new SluiceError('SLUICE_BROKER_FAILED', message, { cause: error })
}
