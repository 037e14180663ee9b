import type { Quota } from './quota-units.ts'

interface Share {
  readonly from: number
  /** Time of the last answer. */
  to: number
  units: number
}

/** In so many shares of its window the calls of a quota are remembered. */
const sharesPerWindow = 64

/** The units of the calls that this process has made and that count still, for a store that has forgotten them. */
export class RecentCalls {
  readonly #logs: readonly { readonly windowMs: number; shares: Share[] }[]

  constructor(quotas: readonly Quota[]) {
    this.#logs = quotas.map(({ windowMs }) => ({ windowMs, shares: [] }))
  }

  /** A call was answered, or cannot be any more. */
  add(units: number): void {
    const now = performance.now()
    this.#forget(now)
    for (const { windowMs, shares } of this.#logs) {
      const last = shares.at(-1)
      if (last && now - last.from < windowMs / sharesPerWindow) {
        last.to = now
        last.units += units
      } else {
        shares.push({ from: now, to: now, units })
      }
    }
  }

  /** Of each quota; never too few. */
  units(): readonly number[] {
    this.#forget(performance.now())
    return this.#logs.map(({ shares }) => shares.reduce((sum, { units }) => sum + units, 0))
  }

  #forget(now: number): void {
    for (const log of this.#logs) {
      if ((log.shares[0]?.to ?? now) + log.windowMs > now) continue
      log.shares = log.shares.filter(({ to }) => to + log.windowMs > now)
    }
  }
}
