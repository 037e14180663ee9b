import { errorText, quote, SluiceError, withDeadline } from '@sluice/core'
import { hasMethods, type RedisClient } from './redis-client.ts'

/**
 * A client of your own, which sends a command in whichever way it likes. It is for runtimes without
 * sockets, where commands travel by HTTP.
 */
export interface CommandClient {
  /**
   * Sends one command. Resolves to the reply of Redis: a text, a whole number, `null`, or a list of
   * these. If Redis replies with an error, rejects with an `Error` whose message is that reply, as
   * in `NOSCRIPT No matching script`.
   * @param command the name of the command and its arguments, all of them texts
   * @param options `signal` is aborted after five seconds, when nobody waits for the reply any more
   */
  send(command: readonly string[], options: { readonly signal: AbortSignal }): Promise<unknown>
}

/** Time (ms) after which a command counts as lost. */
const longestMs = 5_000

export function isCommandClient(client: object): client is CommandClient {
  return hasMethods(client, 'send')
}

export function commandClient(client: CommandClient): RedisClient {
  async function sent(command: readonly string[], signal: AbortSignal): Promise<unknown> {
    try {
      return await client.send(command, { signal })
    } catch (error) {
      throw error instanceof Error ? error : new Error(errorText(error))
    }
  }

  return {
    isCluster: false,
    async send(name, args) {
      const abort = new AbortController()
      const late = (): Error => {
        const error = new Error(`the command timed out after ${longestMs} ms`)
        abort.abort(error)
        return error
      }
      return checked(await withDeadline(sent([name, ...args], abort.signal), longestMs, late))
    },
  }
}

/** @throws SluiceError for a reply that is none of Redis, such as the body of a response */
function checked(reply: unknown): unknown {
  if (Array.isArray(reply) || reply === null) return reply
  if (typeof reply === 'string' || typeof reply === 'number') return reply
  throw new SluiceError(
    'SLUICE_STORE_REPLY',
    `send() of the client must resolve to the reply itself (a text, a whole number, null or a list), but resolved to ${quote(reply)}; any object with a method send() counts as a client, so check that this one sends commands to Redis`,
  )
}
