import { type Check, type HotKeys, mergeHotKeys, SpaceSaving } from '@sluice/core'

export const topKeysBys = ['asked', 'denied', 'cost'] as const
/** Times over which the busiest keys are counted. */
export const topKeysWindows = ['1m', '10m', '1h'] as const

/** Ranking of keys: by requests, by denials, or by units requested. */
export type TopKeysBy = (typeof topKeysBys)[number]

/** Time that the ranking covers. */
export type TopKeysWindow = (typeof topKeysWindows)[number]

/** The busiest keys, by one count and in one window. */
export interface Ranking extends HotKeys {
  /** Start of the counting, in milliseconds since 1970. */
  readonly sinceMs: number
}

const minuteMs = 60_000
const counters = 1_000
/** Fewer are kept of a past minute, and of ten of them. */
export const keptCounters = 100
const minutesOfBlock = 10
const keptBlocks = 6

/**
 * The busiest keys of one policy in this process, over rolling windows: bounded, whatever clients
 * send.
 */
export class TopKeys {
  readonly #asked = new RollingSketch()
  readonly #denied = new RollingSketch()
  /** Most policies never see a cost other than 1: then requests and units are the same. */
  #cost: RollingSketch | undefined

  /** @param nowMs on the clock of `performance.now()` */
  note({ key, cost }: Pick<Check, 'key' | 'cost'>, isDenied: boolean, nowMs: number): void {
    if (cost !== 1) this.#cost ??= this.#asked.copy()
    this.#asked.add(key, 1, nowMs)
    if (isDenied) this.#denied.add(key, 1, nowMs)
    if (this.#cost && cost > 0) this.#cost.add(key, cost, nowMs)
  }

  /**
   * Returns the share of requests of the last one or two minutes that certainly came from the
   * busiest key.
   */
  get hottestShare(): number {
    return this.#asked.hottestShare(performance.now())
  }

  top(by: TopKeysBy, window: TopKeysWindow, most: number): Ranking {
    const nowMs = performance.now()
    const sketches = { asked: this.#asked, denied: this.#denied, cost: this.#cost ?? this.#asked }
    const ranking = sketches[by].top(window, most, nowMs)
    return { ...ranking, sinceMs: Math.round(Date.now() - (nowMs - ranking.sinceMs)) }
  }

  /** The counts that are kept separately. */
  get counts(): readonly TopKeysBy[] {
    return this.#cost ? topKeysBys : ['asked', 'denied']
  }
}

interface Period extends HotKeys {
  readonly fromMs: number
}

/**
 * A sketch of the current minute, and summaries of earlier ones. Times are from
 * `performance.now()`, which never steps. A late decision counts in the current minute.
 */
class RollingSketch {
  #sketch = new SpaceSaving(counters)
  #fromMs: number | undefined
  /** The end of the current minute. */
  #untilMs = Number.NEGATIVE_INFINITY
  #minutes: readonly Period[] = []
  #blocks: readonly Period[] = []
  #closed = 0

  add(key: string, by: number, nowMs: number): void {
    if (nowMs >= this.#untilMs) this.#roll(nowMs)
    this.#sketch.add(key, by)
  }

  /** Returns a copy of the sketch. */
  copy(): RollingSketch {
    const copy = new RollingSketch()
    copy.#sketch = this.#sketch.copy()
    copy.#fromMs = this.#fromMs
    copy.#untilMs = this.#untilMs
    copy.#minutes = this.#minutes
    copy.#blocks = this.#blocks
    copy.#closed = this.#closed
    return copy
  }

  /** Covers the requested window, and up to a minute more; `1h` up to eleven minutes more. */
  top(window: TopKeysWindow, most: number, nowMs: number): Ranking {
    this.#roll(nowMs)
    const now = { ...this.#sketch.top(counters), fromMs: this.#fromMs ?? nowMs }
    const minutes = this.#minutes
    const running = this.#closed % minutesOfBlock
    const before: Readonly<Record<TopKeysWindow, readonly Period[]>> = {
      '1m': minutes.slice(-1),
      '10m': minutes,
      '1h': [...this.#blocks, ...minutes.slice(minutes.length - running)],
    }
    const periods = [...before[window], now]
    const sinceMs = Math.min(...periods.map(({ fromMs }) => fromMs))
    return { ...mergeHotKeys(periods, most), sinceMs }
  }

  hottestShare(nowMs: number): number {
    this.#roll(nowMs)
    const { keys = [], total = 0 } = this.#minutes.at(-1) ?? {}
    const surest = this.#sketch.surest()
    const all = this.#sketch.total + total
    if (surest === undefined && keys.length === 0) return 0
    const before = keys.find(({ key }) => key === surest)
    let most = this.#sketch.sureCount(surest ?? '') + (before ? before.count - before.error : 0)
    for (const { key, count, error } of keys) {
      most = Math.max(most, count - error + this.#sketch.sureCount(key))
    }
    return most / all
  }

  #roll(nowMs: number): void {
    const fromMs = this.#fromMs ?? nowMs
    const passed = Math.max(0, Math.floor((nowMs - fromMs) / minuteMs))
    this.#fromMs = fromMs + passed * minuteMs
    this.#untilMs = this.#fromMs + minuteMs
    if (passed < 1) return
    // Minutes before the oldest kept block are dropped.
    const first = Math.max(0, passed - (keptBlocks + 1) * minutesOfBlock)
    if (first > 0) this.#sketch.clear()
    for (let minute = first; minute < passed; minute += 1) {
      this.#close({ ...this.#sketch.top(keptCounters), fromMs: fromMs + minute * minuteMs })
      this.#sketch.clear()
    }
  }

  #close(minute: Period): void {
    if (this.#minutes.length === minutesOfBlock) this.#minutes = this.#minutes.slice(1)
    this.#minutes = [...this.#minutes, minute]
    this.#closed += 1
    if (this.#closed % minutesOfBlock !== 0) return
    const block = {
      ...mergeHotKeys(this.#minutes, keptCounters),
      fromMs: this.#minutes[0]?.fromMs ?? 0,
    }
    this.#blocks = [...this.#blocks, block].slice(-keptBlocks)
  }
}
