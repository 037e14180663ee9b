import type { Quota } from './quota-units.ts'

interface Share {
  readonly from: number
  /** Time of the last answer. */
  to: number
  units: number
}

/** Number of slices that a window is remembered in. */
const sharesPerWindow = 64

/** Units of this process' calls that still count, to report to a store that has lost its data. */
export class RecentCalls {
  readonly #logs: readonly { readonly windowMs: number; shares: Share[] }[]

  constructor(quotas: readonly Quota[]) {
    this.#logs = quotas.map(({ windowMs }) => ({ windowMs, shares: [] }))
  }

  /** Adds a call that has its answer, or can get none any more. */
  add(units: number): void {
    const now = performance.now()
    this.#forget(now)
    for (const { windowMs, shares } of this.#logs) {
      const last = shares.at(-1)
      if (last && now - last.from < windowMs / sharesPerWindow) {
        last.to = now
        last.units += units
      } else shares.push({ from: now, to: now, units })
    }
  }

  /** Returns the units of each quota; never too few. */
  units(): readonly number[] {
    this.#forget(performance.now())
    return this.#logs.map(({ shares }) => shares.reduce((sum, { units }) => sum + units, 0))
  }

  get hasUnits(): boolean {
    return this.units().some((units) => units > 0)
  }

  #forget(now: number): void {
    for (const log of this.#logs) {
      if ((log.shares[0]?.to ?? now) + log.windowMs > now) continue
      log.shares = log.shares.filter(({ to }) => to + log.windowMs > now)
    }
  }
}
