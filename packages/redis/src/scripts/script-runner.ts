import { errorText, type StoreScripts } from '@sluice/core'
import type { RedisClient } from '../clients/redis-client.ts'
import { deadline } from './generated/lua.ts'
import { type Script, scriptOf } from './scripts.ts'
import { sendInTime } from './send-in-time.ts'

/**
 * Runs scripts by SHA-1, and sends the source only to a server that does not know it. After any
 * other error a script is not retried: it may have counted. While a script runs for the first time,
 * later calls wait, so that its source is sent once and calls keep their order.
 */
export class ScriptRunner {
  readonly #client: RedisClient
  readonly #known = new Set<Script>()
  readonly #waiting: (() => void)[] = []
  #isLoading = false

  constructor(client: RedisClient) {
    this.#client = client
  }

  /** True while a script runs for the first time: calls must wait. */
  get isLoading(): boolean {
    return this.#isLoading
  }

  /**
   * Waits for the script. Check `isLoading` again afterwards: an earlier call may load the next
   * one.
   */
  loaded(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  /** @param args the SHA-1, the number of keys, the keys, and further values */
  run<T>(script: Script, args: string[], read: (reply: unknown) => T): Promise<T> {
    if (!this.#known.has(script)) return this.#load(script, args).then(read)
    // Lower case, which ioredis looks up without copying.
    return this.#client.send('evalsha', args, keyOf(args)).then(read, async (error: unknown) => {
      if (!isUnknownScript(error)) throw error
      // The server has lost the script, so the call did not run.
      this.#known.delete(script)
      while (this.#isLoading) await this.loaded()
      return this.run(script, args, read)
    })
  }

  async #load(script: Script, args: string[]): Promise<unknown> {
    this.#isLoading = true
    try {
      const reply = await evaluate(this.#client, script, args)
      this.#known.add(script)
      return reply
    } finally {
      this.#isLoading = false
      // The first of them may load the next script: then the others keep waiting.
      for (const resolve of this.#waiting.splice(0)) resolve()
    }
  }
}

/** Runs a script on keys of one slot; the first key selects the node. */
export type RunScript = StoreScripts['run']

/** @param keepsDeadlines false for a server that forbids TIME in scripts */
export function scriptsOf(redis: RedisClient, keepsDeadlines: boolean): RunScript {
  const scripts = new Map<string, Script>()
  function run(text: string, keys: readonly string[], args: readonly string[]) {
    const script = scripts.get(text) ?? scriptOf(text)
    scripts.set(text, script)
    return evaluate(redis, script, [script.sha1, String(keys.length), ...keys, ...args])
  }
  return (text, keys, args, control) => {
    if (!control || !keepsDeadlines) return run(text, keys, args)
    return sendInTime(redis, { key: keys[0] ?? '', control }, (untilMs) =>
      run(`${deadline}\n${text}`, keys, [...args, untilMs]),
    )
  }
}

async function evaluate(client: RedisClient, script: Script, args: string[]): Promise<unknown> {
  try {
    return await client.send('evalsha', args, keyOf(args))
  } catch (error) {
    if (!isUnknownScript(error)) throw error
    return client.send('eval', [script.text, ...args.slice(1)], keyOf(args))
  }
}

/** One of the keys, which selects the node of a Cluster: it follows the number of keys. */
function keyOf(args: readonly string[]): string {
  return args[2] ?? ''
}

function isUnknownScript(error: unknown): boolean {
  return errorText(error).startsWith('NOSCRIPT')
}
