import type { StoreScripts } from '@sluice/core'
import type { RedisClient } from '../clients/redis-client.ts'
import { deadline } from './generated/lua.ts'
import { type Script, scriptOf } from './scripts.ts'
import { sendInTime } from './send-in-time.ts'

/**
 * Runs scripts by their SHA-1, and sends a text only to a server that does not know it. After any
 * other error a script is not run again: it may have counted. While a script is asked for the first
 * time, later calls wait their turn, so that its text is sent once and calls keep their order.
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

  /** Waits for the script. A call before may load the next one: look at `isLoading` again. */
  loaded(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  /** @param args the SHA-1, the number of keys, the keys, and what the script reads */
  run(script: Script, args: string[]): Promise<unknown> {
    if (!this.#known.has(script)) return this.#load(script, args)
    // In lower case, which ioredis looks up without a copy.
    return this.#client.send('evalsha', args, keyOf(args)).catch((error: unknown) => {
      if (!isUnknownScript(error)) throw error
      this.#known.delete(script)
      return this.#runAgain(script, args)
    })
  }

  /** For a call that did not run, since the server has forgotten its script. */
  async #runAgain(script: Script, args: string[]): Promise<unknown> {
    while (this.#isLoading) await this.loaded()
    return this.run(script, args)
  }

  async #load(script: Script, args: string[]): Promise<unknown> {
    this.#isLoading = true
    try {
      const reply = await evaluate(this.#client, script, args)
      this.#known.add(script)
      return reply
    } finally {
      this.#isLoading = false
      // The first of them may be the next to load a script: then the others keep waiting.
      for (const resolve of this.#waiting.splice(0)) resolve()
    }
  }
}

/** Runs a script over keys of one slot; the first one finds the node. */
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

/** One of the keys, by which a Cluster finds the node: it stands behind their number. */
function keyOf(args: readonly string[]): string {
  return args[2] ?? ''
}

function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT')
}
