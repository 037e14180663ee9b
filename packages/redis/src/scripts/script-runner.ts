import type { StoreScripts } from '@sluice/core'
import type { EncodedCall } from '../calls/call.ts'
import { sendInTime } from '../calls/send-in-time.ts'
import type { RedisClient } from '../clients/redis-client.ts'
import { readLua } from '../read-lua.ts'
import type { Script } from './scripts.ts'
import { sha1Of } from './sha1.ts'

/**
 * Runs scripts by their SHA-1, and sends a text only to a server that says it does not know it.
 * After any other error a script is not run again: it may have counted. While a script is asked for
 * the first time, later calls wait their turn: so its text is sent once, and calls keep their
 * order.
 */
export class ScriptRunner {
  readonly #client: RedisClient
  readonly #known = new Set<Script>()
  readonly #waiting: (() => void)[] = []
  #isLoading = false

  constructor(client: RedisClient) {
    this.#client = client
  }

  /** True if a script is asked for the first time: then a call has to wait. */
  get isLoading(): boolean {
    return this.#isLoading
  }

  /**
   * Waits until the script is loaded. A call that went before may load the next one: look at
   * `isLoading` again, and run the call at once.
   */
  loaded(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  run(call: EncodedCall): Promise<unknown> {
    if (!this.#known.has(call.script)) return this.#load(call)
    // In lower case, which ioredis looks up without a copy.
    return this.#client.send('evalsha', call.args, keyOf(call)).catch((error: unknown) => {
      if (!isUnknownScript(error)) throw error
      this.#known.delete(call.script)
      return this.#runAgain(call)
    })
  }

  /** For a call that did not run, since the server has forgotten its script. */
  async #runAgain(call: EncodedCall): Promise<unknown> {
    while (this.#isLoading) await this.loaded()
    return this.run(call)
  }

  async #load(call: EncodedCall): Promise<unknown> {
    this.#isLoading = true
    try {
      const reply = await this.#evaluate(call)
      this.#known.add(call.script)
      return reply
    } finally {
      this.#isLoading = false
      // The first of them may be the next to load a script: then the others go on waiting.
      for (const resolve of this.#waiting.splice(0)) resolve()
    }
  }

  async #evaluate(call: EncodedCall): Promise<unknown> {
    const { script, args } = call
    try {
      return await this.#client.send('evalsha', args, keyOf(call))
    } catch (error) {
      if (!isUnknownScript(error)) throw error
      return this.#client.send('eval', [script.text, ...args.slice(1)], keyOf(call))
    }
  }
}

/** Runs a script over keys of one slot; the first one finds the node. */
export type RunScript = StoreScripts['run']

/** @param keepsDeadlines false for a server that forbids TIME in scripts */
export function scriptsOf(redis: RedisClient, keepsDeadlines: boolean): RunScript {
  const sums = new Map<string, string>()
  async function run(text: string, keys: readonly string[], args: readonly string[]) {
    const sha1 = sums.get(text) ?? sha1Of(text)
    sums.set(text, sha1)
    const [key = ''] = keys
    const rest = [String(keys.length), ...keys, ...args]
    try {
      return await redis.send('evalsha', [sha1, ...rest], key)
    } catch (error) {
      if (!isUnknownScript(error)) throw error
      return redis.send('eval', [text, ...rest], key)
    }
  }
  return (text, keys, args, control) => {
    if (!control || !keepsDeadlines) return run(text, keys, args)
    return sendInTime(redis, { key: keys[0] ?? '', control }, (untilMs) =>
      run(`${readLua('deadline')}${text}`, keys, [...args, untilMs]),
    )
  }
}

/** One of the keys, by which a Cluster finds the node: it stands behind their number. */
function keyOf({ args }: EncodedCall): string {
  return args[2] ?? ''
}

function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT')
}
