import type { EncodedCall } from './call.ts'
import type { RedisClient } from './clients/redis-client.ts'
import type { Script } from './scripts.ts'

/**
 * Runs scripts by their SHA-1, and sends a text only to a server that says it does not know it: once, while other calls of the script wait for
 * that. After any other error a script is not run again: it may have counted. Nodes of a Cluster learn a script one by one.
 */
export class ScriptRunner {
  readonly #client: RedisClient
  /** The scripts whose text is on its way. */
  readonly #loading = new Map<Script, Promise<unknown>>()

  constructor(client: RedisClient) {
    this.#client = client
  }

  run(call: EncodedCall): Promise<unknown> {
    const loading = this.#loading.get(call.script)
    if (loading) return this.#after(loading, call)
    return this.#client.send(call.command, keyOf(call)).catch((error: unknown) => {
      if (!isUnknownScript(error)) throw error
      const other = this.#loading.get(call.script)
      return other ? this.#after(other, call) : this.#load(call)
    })
  }

  async #load(call: EncodedCall): Promise<unknown> {
    const { script, command } = call
    const loaded = this.#client.send(['EVAL', script.text, ...command.slice(2)], keyOf(call))
    this.#loading.set(script, loaded)
    try {
      return await loaded
    } finally {
      this.#loading.delete(script)
    }
  }

  async #after(loading: Promise<unknown>, call: EncodedCall): Promise<unknown> {
    // Whatever came of it: this call tells for itself.
    await loading.catch(() => undefined)
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
