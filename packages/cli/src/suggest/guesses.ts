import type { LogRequest } from '../formats/log-request.ts'
import type { Guesser } from './suggestion.ts'

const refusals: readonly number[] = [401, 403]
/** Refusals on one route. Fewer are a forgotten password, or a token that has expired. */
const minRefused = 100
/** Share of the refusals in the requests of a route. An office or a proxy stays below it. */
const minShare = 0.9
const maxTallies = 100_000

interface Tally extends Guesser {
  refused: number
  /** Requests from the first refusal on. */
  all: number
  readonly number: number
}

/** The clients whose requests of one route are refused again and again, at whatever rate. */
export class Guesses {
  readonly #tallies = new Map<string, Tally>()

  add(client: string, number: number, { method, path, status }: LogRequest): void {
    const isRefused = refusals.includes(status)
    if (!isRefused && this.#tallies.size === 0) return
    const route = `${method} ${path}`
    const id = `${number} ${route}`
    let tally = this.#tallies.get(id)
    if (!tally && isRefused && this.#tallies.size < maxTallies) {
      tally = { client, number, route, refused: 0, all: 0 }
      this.#tallies.set(id, tally)
    }
    if (!tally) return
    tally.all += 1
    if (isRefused) tally.refused += 1
  }

  /** Returns those with the most refusals first. */
  found(): readonly Tally[] {
    return [...this.#tallies.values()]
      .filter(({ refused, all }) => refused >= minRefused && refused >= all * minShare)
      .sort((one, other) => other.refused - one.refused)
  }
}
