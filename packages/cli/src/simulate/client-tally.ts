import { RollingCounts } from '../rates/rolling-counts.ts'
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

/** One client of a log. */
export class ClientTally {
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
