import { RollingRates, rateWindowsMs } from '../rates/rolling-rates.ts'
import type { BusyClient, DeniedClient } from '../report/simulation-report.ts'

/** The refusals of one client. Times (ms) are relative to the first request of the log. */
interface Denials {
  count: number
  readonly first: number
  /** Start of refusals not yet ended by an allowed request, or -1. */
  began: number
  longest: number
  longestAt: number
  hour: number
  policies: readonly string[]
}

const maxClients = 1_000_000
export const hourMs = 3_600_000

/** The clients of a log, at most a million, numbered in the order of their first requests. */
export class ClientTable {
  readonly #numbers = new Map<string, number>()
  readonly #rates = new RollingRates()
  readonly #denials = new Map<number, Denials>()
  /** Lists of names, so that clients with the same one share it. */
  readonly #lists = new Map<string, readonly string[]>()
  #beginMs: number | undefined

  get size(): number {
    return this.#numbers.size
  }

  get deniedSize(): number {
    return this.#denials.size
  }

  /**
   * Counts a request.
   * @returns the number of the client; `undefined` for a client beyond the bound
   */
  request(client: string, timeMs: number): number | undefined {
    let number = this.#numbers.get(client)
    if (number === undefined) {
      if (this.#numbers.size >= maxClients) return undefined
      this.#beginMs ??= timeMs
      number = this.#numbers.size
      this.#numbers.set(client, number)
    }
    this.#rates.add(number, timeMs)
    return number
  }

  allow(client: number): void {
    if (this.#denials.size === 0) return
    const denials = this.#denials.get(client)
    if (denials) denials.began = -1
  }

  /** Records a refusal. @returns whether it is the client's first one in an hour */
  deny(client: number, timeMs: number, by: readonly string[]): boolean {
    const time = timeMs - (this.#beginMs ?? 0)
    const denials = this.#denials.get(client) ?? this.#denialsFrom(client, time)
    denials.count += 1
    if (denials.began < 0) denials.began = time
    if (time - denials.began > denials.longest) {
      denials.longest = time - denials.began
      denials.longestAt = denials.began
    }
    for (const name of by) {
      if (denials.policies.includes(name)) continue
      denials.policies = this.#list([...denials.policies, name])
    }
    const hour = Math.floor(timeMs / hourMs)
    const isFirst = denials.hour !== hour
    denials.hour = hour
    return isFirst
  }

  /** The highest request counts in a window, by client number. */
  ratesIn(window: number): Uint32Array {
    return Uint32Array.from({ length: this.size }, (_, client) =>
      this.#rates.rateOf(client, window),
    )
  }

  /** Clients by number; all clients without numbers. */
  *named(numbers?: ReadonlySet<number>): Generator<BusyClient> {
    for (const [client, number] of this.#numbers) {
      if (numbers?.has(number) === false) continue
      yield {
        client,
        requests: this.#rates.requestsOf(number),
        denied: this.#denials.get(number)?.count ?? 0,
        rates: rateWindowsMs.map((_, window) => this.#rates.rateOf(number, window)),
      }
    }
  }

  /** Returns the clients with the most refusals, most first. */
  mostDenied(count: number): readonly DeniedClient[] {
    const most = new Map(
      [...this.#denials].sort(([, one], [, other]) => other.count - one.count).slice(0, count),
    )
    const begin = this.#beginMs ?? 0
    const found = new Map<number, DeniedClient>()
    for (const [client, number] of this.#numbers) {
      const denials = most.get(number)
      if (!denials) continue
      found.set(number, {
        client,
        requests: this.#rates.requestsOf(number),
        denied: denials.count,
        policies: denials.policies,
        firstDenialMs: begin + denials.first,
        longestDenialMs: denials.longest,
        longestDenialAtMs: begin + denials.longestAt,
      })
    }
    return [...most.keys()].flatMap((number) => found.get(number) ?? [])
  }

  #denialsFrom(client: number, first: number): Denials {
    const denials = {
      ...{ count: 0, first, began: -1, longest: 0, longestAt: first, hour: -1 },
      policies: this.#list([]),
    }
    this.#denials.set(client, denials)
    return denials
  }

  #list(names: readonly string[]): readonly string[] {
    const text = JSON.stringify(names)
    const known = this.#lists.get(text)
    if (known) return known
    this.#lists.set(text, names)
    return names
  }
}
