import type { LogRequest } from '../formats/log-request.ts'
import type { Guesser } from './suggestion.ts'

const refusals: readonly number[] = [401, 403]
/** Minimum refusals on one route. Fewer are a forgotten password or an expired token. */
const minRefused = 100
/** Minimum share of refusals on a route. An office or a proxy stays below it. */
const minShare = 0.9
const maxTallies = 100_000

interface Tally extends Guesser {
  refused: number
  /** Requests since the first refusal. */
  all: number
  readonly number: number
}

/** Clients whose requests to one route are repeatedly refused, at any rate. */
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

  /** Returns them with the most refusals first. */
  found(): readonly Tally[] {
    return [...this.#tallies.values()]
      .filter(({ refused, all }) => refused >= minRefused && refused >= all * minShare)
      .sort((one, other) => other.refused - one.refused)
  }
}
