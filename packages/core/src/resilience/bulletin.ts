import { notify } from '../limiter/observers.ts'
import type { ResilienceEvent } from './resilience-event.ts'
import { count, noCounts, type ResilienceCounters } from './store-health.ts'

/** Tells the observers of a store's limiters what happens, and counts it. */
export class Bulletin {
  readonly counters: ResilienceCounters = noCounts()
  readonly #observers = new Set<(event: ResilienceEvent) => void>()
  #missed = 0

  observe(observer: (event: ResilienceEvent) => void): void {
    this.#observers.add(observer)
  }

  tell(event: ResilienceEvent): void {
    count(this.counters, event)
    for (const observer of this.#observers) notify(observer, event)
  }

  /** A check whose time is over. All whose time is over at once are told of in one event. */
  countMissed(): void {
    this.#missed += 1
    if (this.#missed > 1) return
    void Promise.resolve().then(() => {
      const checks = this.#missed
      this.#missed = 0
      this.tell({ type: 'deadline-missed', checks })
    })
  }
}
