import type { BusyClient, RatesReport } from '../report/simulation-report.ts'
import { rateWindowsMs } from './rolling-rates.ts'

export interface RatedClients {
  /** The highest request counts in a window, by client number. */
  ratesIn(window: number): Uint32Array
  /** Clients by number. */
  named(numbers: ReadonlySet<number>): Iterable<BusyClient>
}

const maxBusyClients = 500

/** Returns the rates of all clients as a distribution per window, and the busiest ones by name. */
export function ratesReport(clients: RatedClients): RatesReport {
  const rates = rateWindowsMs.map((_, window) => clients.ratesIn(window))
  const sorted = rates.map((ofWindow) => ofWindow.toSorted())
  const busiest = rates.flatMap((ofWindow, window) => {
    const max = maxBusyClients / rates.length
    const least = sorted[window]?.at(-max) ?? 0
    const withRate = (isListed: (rate: number) => boolean) =>
      [...ofWindow.keys()].filter((client) => isListed(ofWindow[client] ?? 0))
    return [...withRate((rate) => rate > least), ...withRate((rate) => rate === least)].slice(
      0,
      max,
    )
  })
  return {
    windowsMs: rateWindowsMs,
    distribution: sorted.map((ofWindow) => {
      const counts = new Map<number, number>()
      for (const rate of ofWindow) counts.set(rate, (counts.get(rate) ?? 0) + 1)
      return [...counts]
    }),
    clients: [...clients.named(new Set(busiest))].sort(
      (one, other) => other.requests - one.requests,
    ),
  }
}
