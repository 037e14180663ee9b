import { RollingCounts, rateWindowsMs } from '../rates/rolling-counts.ts'
import type { BusyClient, DeniedClient } from '../report/simulation-report.ts'

/** The refusals of one client. */
interface Denials {
  count: number
  readonly firstMs: number
  /** Begin of the refusals that no allowed request has ended yet. */
  beganMs: number | undefined
  longestMs: number
  longestAtMs: number
  hourMs: number
  readonly policies: Set<string>
}

const maxClients = 1_000_000
const onceEach: readonly number[] = rateWindowsMs.map(() => 1)

/** The clients of a log, a million at most. */
export class ClientTable {
  /**
   * A client that came once, and was not refused, is the time of its request: most are. The time is
   * told from the first request on, since a small number takes no memory of its own.
   */
  readonly #clients = new Map<string, ClientTally | number>()
  #beginMs: number | undefined

  get size(): number {
    return this.#clients.size
  }

  /**
   * Counts a request.
   * @returns the tally of a client that came before; `undefined` for a client beyond the bound
   */
  request(client: string, timeMs: number): ClientTally | 'first' | undefined {
    const known = this.#clients.get(client)
    if (known === undefined) {
      if (this.#clients.size >= maxClients) return undefined
      this.#beginMs ??= timeMs
      this.#clients.set(client, timeMs - this.#beginMs)
      return 'first'
    }
    const tally = typeof known === 'number' ? this.#tallyOf(client, known) : known
    tally.request(timeMs)
    return tally
  }

  /** Returns the tally of a client whose first request is refused; it has been counted. */
  tallyOf(client: string): ClientTally | undefined {
    const known = this.#clients.get(client)
    return typeof known === 'number' ? this.#tallyOf(client, known) : known
  }

  *busy(): Generator<BusyClient> {
    for (const [client, known] of this.#clients) {
      if (typeof known === 'object') yield known.busy
      else yield { client, requests: 1, denied: 0, rates: onceEach }
    }
  }

  *denied(): Generator<DeniedClient> {
    for (const known of this.#clients.values()) {
      const denied = typeof known === 'object' ? known.denied : undefined
      if (denied) yield denied
    }
  }

  /** @param first time (ms) after the first request of all */
  #tallyOf(client: string, first: number): ClientTally {
    const tally = new ClientTally(client)
    tally.request((this.#beginMs ?? 0) + first)
    this.#clients.set(client, tally)
    return tally
  }
}

/** One client of a log. */
class ClientTally {
  readonly #client: string
  readonly #rates = new RollingCounts()
  #requests = 0
  #denials: Denials | undefined

  constructor(client: string) {
    this.#client = client
  }

  get isDenied(): boolean {
    return this.#denials !== undefined
  }

  request(timeMs: number): void {
    this.#requests += 1
    this.#rates.add(timeMs)
  }

  allow(): void {
    if (this.#denials) this.#denials.beganMs = undefined
  }

  /** @returns whether it is the first refusal of the client in an hour */
  deny(timeMs: number, hourMs: number, policies: Iterable<string>): boolean {
    this.#denials ??= {
      ...{ count: 0, firstMs: timeMs, beganMs: undefined, hourMs: Number.NaN },
      ...{ longestMs: 0, longestAtMs: timeMs, policies: new Set() },
    }
    const denials = this.#denials
    denials.count += 1
    denials.beganMs ??= timeMs
    if (timeMs - denials.beganMs > denials.longestMs) {
      denials.longestMs = timeMs - denials.beganMs
      denials.longestAtMs = denials.beganMs
    }
    for (const policy of policies) denials.policies.add(policy)
    const isFirst = denials.hourMs !== hourMs
    denials.hourMs = hourMs
    return isFirst
  }

  get busy(): BusyClient {
    return {
      client: this.#client,
      requests: this.#requests,
      denied: this.#denials?.count ?? 0,
      rates: this.#rates.maxima,
    }
  }

  get denied(): DeniedClient | undefined {
    const denials = this.#denials
    if (!denials) return undefined
    return {
      client: this.#client,
      requests: this.#requests,
      denied: denials.count,
      policies: [...denials.policies],
      firstDenialMs: denials.firstMs,
      longestDenialMs: denials.longestMs,
      longestDenialAtMs: denials.longestAtMs,
    }
  }
}
