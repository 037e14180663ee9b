import { errorText } from '@sluice/core'
import { Redis } from 'ioredis'

/** A server that accepted a command but did not answer in time. */
export class TimedOut extends Error {}

/** Maximum wait for one reply, in ms. */
const maxAnswerMs = 2_000

/** A separate connection to one server, with a timeout for every command. */
export class RedisLink {
  /** Opened by `connect`. */
  readonly client: Redis
  /** Host, port and protocol, without user and password. */
  readonly address: string
  lastError: Error | undefined
  readonly #deadline: number

  /**
   * @param url `redis://` or `rediss://`, with user, password and number of the database
   * @param deadline the time by `performance.now()` after which to stop waiting
   */
  constructor(url: URL, deadline: number) {
    this.#deadline = deadline
    this.address = `${url.protocol}//${url.hostname}:${url.port || '6379'}`
    this.client = new Redis(url.href, {
      lazyConnect: true,
      // One try, since the doctor looks for failures.
      retryStrategy: () => null,
      maxRetriesPerRequest: 0,
      enableReadyCheck: false,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      connectTimeout: maxAnswerMs,
    })
    this.client.on('error', (error: Error) => {
      this.lastError = error
    })
  }

  /**
   * Sends one command.
   * @throws TimedOut if the server does not answer
   * @throws the server's error reply
   */
  ask(name: string, ...args: readonly (string | number)[]): Promise<unknown> {
    return this.inTime(name, this.client.call(name, ...args))
  }

  /** Waits for work on the same connection, with the timeout of one command. */
  inTime<T>(what: string, work: Promise<T>): Promise<T> {
    const leftMs = Math.max(1, Math.min(maxAnswerMs, this.#deadline - performance.now()))
    const late = new TimedOut(
      `no answer to ${what} within ${Number((leftMs / 1_000).toPrecision(2))} s`,
    )
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(late), leftMs)
      work.then(resolve, reject).finally(() => clearTimeout(timer))
    })
  }
}

/** Returns the message of a Redis error, without the parts of the command that it repeats. */
export function reasonOf(error: unknown): string {
  return errorText(error)
    .replace(/,? with args beginning with:.*/s, '')
    .replaceAll(/\/\/[^\s/@]*@/g, '//…@')
}

/** True for a denied or unknown command. */
export function isRefused(error: unknown): boolean {
  return /NOPERM|unknown (?:sub)?command|can't run this command|not allowed/i.test(reasonOf(error))
}
