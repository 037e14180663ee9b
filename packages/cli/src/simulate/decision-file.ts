import { closeSync, openSync, writeSync } from 'node:fs'
import { errorText, type Outcome } from '@sluice/core'
import type { Replayed } from '../replay/replay.ts'
import { CliError } from '../terminal/exit-codes.ts'

const chunkLength = 64 * 1024

export class DecisionFile {
  readonly #file: number
  #text = ''

  /** @throws CliError if the file cannot be written */
  constructor(path: string) {
    try {
      this.#file = openSync(path, 'w')
    } catch (cause) {
      throw new CliError(`--decisions ${path} cannot be written: ${errorText(cause)}`)
    }
  }

  add({ request, client, result, refusedBy, decision, shadow }: Replayed): void {
    const { startMs, method, path, rule, route } = request
    const line = {
      ...{ timeMs: startMs, client, method, path, result },
      ...(refusedBy !== undefined && { refusedBy }),
      ...((rule ?? route) !== undefined && { route: rule ?? route }),
      outcomes: decision?.outcomes.map(outcomeOf) ?? [],
      ...(shadow && { shadow: shadow.outcomes.map(outcomeOf) }),
    }
    this.#text += `${JSON.stringify(line)}\n`
    if (this.#text.length >= chunkLength) this.#write()
  }

  close(): void {
    this.#write()
    closeSync(this.#file)
  }

  #write(): void {
    writeSync(this.#file, this.#text)
    this.#text = ''
  }
}

function outcomeOf({ policy, allowed, remaining, retryAfterMs, delayMs }: Outcome): object {
  return {
    policy: policy.name,
    allowed,
    remaining,
    retryAfterMs: Number.isFinite(retryAfterMs) ? retryAfterMs : null,
    delayMs,
  }
}
