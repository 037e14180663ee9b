import { errorText } from '@sluice/core'
import { Redis } from 'ioredis'

/** A connection of its own to one server, whose commands all end in time. */
export interface RedisLink {
  readonly client: Redis
  /** Host, port and protocol, without user and password. */
  readonly address: string
  /**
   * Sends one command.
   * @throws TimedOut when the server does not answer
   * @throws the error reply of the server
   */
  ask(name: string, ...args: readonly (string | number)[]): Promise<unknown>
  /** Waits for work on the same connection for as long as for one command. */
  inTime<T>(what: string, work: Promise<T>): Promise<T>
  /** The last error of the connection. */
  lastError(): Error | undefined
  close(): void
}

/** A server that took a command, and did not answer it in time. */
export class TimedOut extends Error {}

/** The longest wait for one answer, in ms. */
const maxAnswerMs = 2_000

/**
 * Prepares a link; `connect` of its client opens it.
 * @param url `redis://` or `rediss://`, with user, password and number of the database
 * @param deadline the time by `performance.now()` after which nothing is waited for any more
 */
export function redisLink(url: URL, deadline: number): RedisLink {
  let last: Error | undefined
  const client = new Redis(url.href, {
    lazyConnect: true,
    // One try, since the doctor looks for failures.
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    enableReadyCheck: false,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    connectTimeout: maxAnswerMs,
  })
  client.on('error', (error: Error) => {
    last = error
  })
  const inTime = <T>(what: string, work: Promise<T>): Promise<T> => {
    const leftMs = Math.max(1, Math.min(maxAnswerMs, deadline - performance.now()))
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      const seconds = Number((leftMs / 1_000).toPrecision(2))
      timer = setTimeout(
        () => reject(new TimedOut(`no answer to ${what} within ${seconds} s`)),
        leftMs,
      )
    })
    // An answer that comes too late, after the link was closed, is nobody's.
    work.catch(() => undefined)
    return Promise.race([work, late]).finally(() => clearTimeout(timer))
  }
  return {
    client,
    address: `${url.protocol}//${url.hostname}:${url.port || '6379'}`,
    ask: (name, ...args) => inTime(name, client.call(name, ...args)),
    inTime,
    lastError: () => last,
    close: () => client.disconnect(),
  }
}

/** The message of an error of Redis, without what it repeats of a command. */
export function reasonOf(error: unknown): string {
  return errorText(error)
    .replace(/,? with args beginning with:.*/s, '')
    .replaceAll(/\/\/[^\s/@]*@/g, '//…@')
}

/** True for a refusal by access rules, or by a server that does not have the command. */
export function isRefused(error: unknown): boolean {
  return /NOPERM|unknown (?:sub)?command|can't run this command|not allowed/i.test(reasonOf(error))
}
