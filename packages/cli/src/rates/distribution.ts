import type { BusyClient, RatesReport } from '../report/simulation-report.ts'
import { rateWindowsMs } from './rolling-rates.ts'

const maxBusyClients = 500

/** The rates of all clients as a distribution for each window, and the busiest ones by name. */
export function ratesReport(clients: Iterable<BusyClient>): RatesReport {
  const counts = rateWindowsMs.map(() => new Map<number, number>())
  const busiest = rateWindowsMs.map((_, window) => new Busiest(window))
  for (const client of clients) {
    for (const [window, rate] of client.rates.entries()) {
      const ofWindow = counts[window]
      ofWindow?.set(rate, (ofWindow.get(rate) ?? 0) + 1)
      busiest[window]?.add(client)
    }
  }
  const listed = new Map(
    busiest.flatMap((each) => each.list()).map((client) => [client.client, client]),
  )
  return {
    windowsMs: rateWindowsMs,
    distribution: counts.map((rates) => [...rates].sort(([one], [other]) => one - other)),
    clients: [...listed.values()].sort((one, other) => other.requests - one.requests),
  }
}

/** The clients with the highest rates of one window. */
class Busiest {
  readonly #window: number
  #clients: BusyClient[] = []
  #least = 0

  constructor(window: number) {
    this.#window = window
  }

  add(client: BusyClient): void {
    const max = maxBusyClients / rateWindowsMs.length
    if (this.#clients.length >= max && this.#rateOf(client) <= this.#least) return
    this.#clients.push(client)
    if (this.#clients.length >= 2 * max) this.#trim(max)
  }

  list(): readonly BusyClient[] {
    this.#trim(maxBusyClients / rateWindowsMs.length)
    return this.#clients
  }

  #trim(max: number): void {
    this.#clients.sort((one, other) => this.#rateOf(other) - this.#rateOf(one))
    this.#clients = this.#clients.slice(0, max)
    this.#least = this.#clients.length < max ? 0 : this.#rateOf(this.#clients.at(-1))
  }

  #rateOf(client: BusyClient | undefined): number {
    return client?.rates[this.#window] ?? 0
  }
}
