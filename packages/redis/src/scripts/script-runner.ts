import type { EncodedCall } from '../calls/call.ts'
import type { RedisClient } from '../clients/redis-client.ts'
import type { Script } from './scripts.ts'

/**
 * Runs scripts by their SHA-1, and sends a text only to a server that says it does not know it. After any other error a script is not run again:
 * it may have counted. While a script is asked for the first time, later calls wait their turn: so its text is sent once, and calls keep their order.
 */
export class ScriptRunner {
  readonly #client: RedisClient
  readonly #known = new Set<Script>()
  readonly #waiting: (() => void)[] = []
  #isLoading = false

  constructor(client: RedisClient) {
    this.#client = client
  }

  /** A promise to wait for before a call is made; `undefined` when nothing is in its way. */
  turn(): Promise<void> | undefined {
    if (!this.#isLoading) return undefined
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  run(call: EncodedCall): Promise<unknown> {
    if (!this.#known.has(call.script)) return this.#load(call)
    return this.#client.send(call.command, keyOf(call)).catch((error: unknown) => {
      if (!isUnknownScript(error)) throw error
      this.#known.delete(call.script)
      return this.#afterLoading(call)
    })
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
    const { script, command } = call
    try {
      return await this.#client.send(command, keyOf(call))
    } catch (error) {
      if (!isUnknownScript(error)) throw error
      return this.#client.send(['EVAL', script.text, ...command.slice(2)], keyOf(call))
    }
  }

  /** For a call that did not run, since the server has forgotten its script. */
  async #afterLoading(call: EncodedCall): Promise<unknown> {
    for (let turn = this.turn(); turn; turn = this.turn()) await turn
    return this.run(call)
  }
}

/** One of the keys, by which a Cluster finds the node: it stands behind their number. */
function keyOf({ command }: EncodedCall): string {
  return String(command[3])
}

function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT')
}
