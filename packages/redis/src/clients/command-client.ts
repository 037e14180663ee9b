import { quote, SluiceError, withDeadline } from '@sluice/core'
import { hasMethods, type RedisClient } from './redis-client.ts'

/**
 * A custom client, which sends commands however it likes. Made for runtimes without sockets, where
 * commands go over HTTP.
 */
export interface CommandClient {
  /**
   * Sends one command. Resolves to Redis's reply: a string, an integer, `null`, or a list of these.
   * If Redis replies with an error, rejects with an `Error` that has the reply as its message, such
   * as `NOSCRIPT No matching script`.
   * @param command the command's name and arguments, all of them strings
   * @param options `signal` aborts after five seconds, when nobody is waiting for the reply
   */
  send(command: readonly string[], options: { readonly signal: AbortSignal }): Promise<unknown>
}

/** Time (ms) after which a command counts as lost. */
const longestMs = 5_000

export function commandClient(client: object): RedisClient | undefined {
  if (!hasMethods<CommandClient>(client, 'send')) return undefined

  return {
    isCluster: false,
    async send(name, args) {
      const abort = new AbortController()
      const late = (): Error => {
        const error = new Error(`the command timed out after ${longestMs} ms`)
        abort.abort(error)
        return error
      }
      const sent = Promise.resolve(client.send([name, ...args], { signal: abort.signal }))
      return checked(await withDeadline(sent, longestMs, late))
    },
  }
}

/** @throws SluiceError for a value that is not a Redis reply, such as a response body */
function checked(reply: unknown): unknown {
  if (Array.isArray(reply) || reply === null) return reply
  if (typeof reply === 'string' || typeof reply === 'number') return reply
  throw new SluiceError(
    'SLUICE_STORE_REPLY',
    `the client's send() must resolve to the reply itself (a string, an integer, null or a list), but resolved to ${quote(reply)}; any object with a send() method counts as a client, so check that this one sends commands to Redis`,
  )
}
