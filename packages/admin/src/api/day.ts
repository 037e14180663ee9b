import type { Static } from '@sinclair/typebox'
import type { Store } from '@sluice/core'
import type { liveAnswer } from './schemas/fleet.ts'

type Live = Static<typeof liveAnswer>
/** Checks, denials and near misses. */
type Counts = readonly [checks: number, denied: number, near: number]

export const hourMs = 3_600_000
export const hoursOfDay = 24
const shareMs = 60_000
const ttlMs = (hoursOfDay + 1) * hourMs
/** Maximum characters of a report. A fleet of any size keeps two reports. */
const maxReport = 60_000

/**
 * The last 24 hours of each policy with traffic, by hour, from samples of the fleet's counters. All
 * processes see the same counters, so the highest count of an hour is the most accurate: a new
 * process takes over the counts of others.
 */
export class Day {
  readonly #policies = new Map<string, Map<number, Counts>>()
  #before: ReadonlyMap<string, Counts> | undefined
  #turn: number | undefined

  note({ at, policies }: Pick<Live, 'at' | 'policies'>): void {
    const hour = Math.floor(at / hourMs)
    const now = new Map(policies.map((each) => [each.policy, countsOf(each)]))
    for (const [policy, [checks, denied, near]] of this.#before ? now : []) {
      const [a, b, c] = this.#before?.get(policy) ?? none
      const hours = this.#policies.get(policy)
      const [x, y, z] = hours?.get(hour) ?? none
      if (checks <= a) continue
      const counts = [
        x + checks - a,
        y + Math.max(0, denied - b),
        z + Math.max(0, near - c),
      ] as const
      this.#policies.set(policy, (hours ?? new Map<number, Counts>()).set(hour, counts))
    }
    this.#before = now
    for (const [policy, hours] of this.#policies) {
      for (const old of hours.keys()) if (old <= hour - hoursOfDay) hours.delete(old)
      if (hours.size === 0) this.#policies.delete(policy)
    }
  }

  /** Policies with their hours, most refused first, then busiest. */
  get policies(): readonly (readonly [policy: string, hours: ReadonlyMap<number, Counts>])[] {
    const total = (hours: ReadonlyMap<number, Counts>, place: 0 | 1) =>
      [...hours.values()].reduce((sum, counts) => sum + counts[place], 0)
    return [...this.#policies].sort(
      ([, one], [, other]) => total(other, 1) - total(one, 1) || total(other, 0) - total(one, 0),
    )
  }

  /**
   * Publishes a report once a minute, alternately under two names. So the previous minute's counts
   * can be read, and outlive their process.
   */
  async share(fleet: Store['fleet'], nowMs: number): Promise<void> {
    const turn = Math.floor(nowMs / shareMs)
    if (!fleet?.shareReport || turn === this.#turn) return
    // The first report only reads: it must not replace a fuller one.
    const isFirst = this.#turn === undefined
    this.#turn = turn
    const own = isFirst
      ? { member: 'reader', ttlMs: 1, text: '[]' }
      : { member: `turn-${turn % 2}`, ttlMs, text: this.#text() }
    // An unavailable store is tried again in a minute.
    const texts = await fleet.shareReport({ topic: 'hours', ...own }).catch(() => [])
    for (const text of texts) this.#hear(text, Math.floor(nowMs / hourMs))
  }

  #text(): string {
    let rows = this.policies.map(([policy, hours]) => [policy, [...hours].map((row) => row.flat())])
    while (JSON.stringify(rows).length > maxReport) rows = rows.slice(0, rows.length / 2)
    return JSON.stringify(rows)
  }

  /** Skips unreadable parts: a process of another version may have written them. */
  #hear(text: string, nowHour: number): void {
    for (const [policy, rows] of listIn(text).map(list)) {
      if (typeof policy !== 'string') continue
      const hours = this.#policies.get(policy) ?? new Map<number, Counts>()
      for (const [hour = 0, ...heard] of list(rows).map(numbers)) {
        if (heard.length !== 3 || hour > nowHour || hour <= nowHour - hoursOfDay) continue
        const [x, y, z] = hours.get(hour) ?? none
        const [a = 0, b = 0, c = 0] = heard
        hours.set(hour, [Math.max(x, a), Math.max(y, b), Math.max(z, c)])
      }
      if (hours.size > 0) this.#policies.set(policy, hours)
    }
  }
}

const none: Counts = [0, 0, 0]

function countsOf(of: Live['policies'][number]): Counts {
  const { allowed, denied, shadowAllowed, shadowDenied, fallback, nearMisses } = of
  return [allowed + denied + shadowAllowed + shadowDenied + fallback, denied, nearMisses]
}

function listIn(text: string): readonly unknown[] {
  try {
    return list(JSON.parse(text))
  } catch {
    return []
  }
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function numbers(value: unknown): readonly number[] {
  return list(value)
    .filter((each) => Number.isSafeInteger(each))
    .map(Number)
}
