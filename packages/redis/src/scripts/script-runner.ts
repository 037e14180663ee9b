import type { StoreScripts } from '@sluice/core'
import type { RedisClient } from '../clients/redis-client.ts'
import { deadline } from './generated/lua.ts'
import { type Script, scriptOf } from './scripts.ts'
import { sendInTime } from './send-in-time.ts'

/** A script, and the arguments behind it: the number of keys, the keys, and what it reads. */
export interface ScriptCall {
  readonly script: Script
  /** Begins with the SHA-1. */
  readonly args: string[]
}

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

  run(call: ScriptCall): Promise<unknown> {
    if (!this.#known.has(call.script)) return this.#load(call)
    // In lower case, which ioredis looks up without a copy.
    return this.#client.send('evalsha', call.args, keyOf(call)).catch((error: unknown) => {
      if (!isUnknownScript(error)) throw error
      this.#known.delete(call.script)
      return this.#runAgain(call)
    })
  }

  /** For a call that did not run, since the server has forgotten its script. */
  async #runAgain(call: ScriptCall): Promise<unknown> {
    while (this.#isLoading) await this.loaded()
    return this.run(call)
  }

  async #load(call: ScriptCall): Promise<unknown> {
    this.#isLoading = true
    try {
      const reply = await evaluate(this.#client, call)
      this.#known.add(call.script)
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
    return evaluate(redis, { script, args: [script.sha1, String(keys.length), ...keys, ...args] })
  }
  return (text, keys, args, control) => {
    if (!control || !keepsDeadlines) return run(text, keys, args)
    return sendInTime(redis, { key: keys[0] ?? '', control }, (untilMs) =>
      run(`${deadline}\n${text}`, keys, [...args, untilMs]),
    )
  }
}

async function evaluate(client: RedisClient, call: ScriptCall): Promise<unknown> {
  const { script, args } = call
  try {
    return await client.send('evalsha', args, keyOf(call))
  } catch (error) {
    if (!isUnknownScript(error)) throw error
    return client.send('eval', [script.text, ...args.slice(1)], keyOf(call))
  }
}

/** One of the keys, by which a Cluster finds the node: it stands behind their number. */
function keyOf({ args }: ScriptCall): string {
  return args[2] ?? ''
}

function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT')
}
