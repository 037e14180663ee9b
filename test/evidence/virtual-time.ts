import { AsyncLocalStorage } from 'node:async_hooks'

/** What is true for one process of a fleet. */
export interface VirtualProcess {
  /** By how much (ms) its wall clock is wrong. */
  skewMs: number
  /** Its timers wait for this time. */
  pausedUntilMs: number
  /** Its timers never run. */
  isDead: boolean
}

interface Timer {
  readonly run: () => void
  readonly process: VirtualProcess | undefined
  atMs: number
}

const epochMs = 1_795_195_800_000
const real = { now: Date.now, performance: performance.now, setTimeout, clearTimeout }
const random = Math.random

/** Clocks, timers and chance of all processes of a fleet, which live in this one. `dispose` brings the real ones back. */
export class VirtualTime implements Disposable {
  nowMs = 0
  readonly #timers: Timer[] = []
  readonly #process = new AsyncLocalStorage<VirtualProcess>()

  constructor(seed: number) {
    let state = seed | 1
    Math.random = () => {
      // xorshift32
      state ^= state << 13
      state ^= state >>> 17
      state ^= state << 5
      return (state >>> 0) / 2 ** 32
    }
    Date.now = () => epochMs + this.nowMs + (this.#process.getStore()?.skewMs ?? 0)
    performance.now = () => this.nowMs
    const start = (run: () => void, delayMs = 0) => this.#start(run, delayMs)
    const stop = (timer: Timer) => this.#stop(timer)
    Object.assign(globalThis, { setTimeout: start, clearTimeout: stop })
  }

  [Symbol.dispose](): void {
    // Otherwise each promise of all later fleets would carry the process of this one along.
    this.#process.disable()
    Date.now = real.now
    performance.now = real.performance.bind(performance)
    Math.random = random
    Object.assign(globalThis, { setTimeout: real.setTimeout, clearTimeout: real.clearTimeout })
  }

  /** Runs code of a process; `undefined`: of none, whose clock is right. */
  as<T>(process: VirtualProcess | undefined, run: () => T): T {
    return process ? this.#process.run(process, run) : this.#process.exit(run)
  }

  /** Has the clocks show an earlier time while something runs. */
  at<T>(ms: number, run: () => T): T {
    const { nowMs } = this
    this.nowMs = ms
    const result = this.as(undefined, run)
    this.nowMs = nowMs
    return result
  }

  async advance(ms: number): Promise<void> {
    const untilMs = this.nowMs + ms
    await settled()
    for (let next = this.#timers[0]; next && next.atMs <= untilMs; next = this.#timers[0]) {
      this.#timers.shift()
      this.nowMs = Math.max(this.nowMs, next.atMs)
      const { process, run } = next
      if (process?.isDead) continue
      if (process && process.pausedUntilMs > this.nowMs) {
        next.atMs = process.pausedUntilMs
        this.#insert(next)
        continue
      }
      this.as(process, run)
      await settled()
    }
    this.nowMs = untilMs
  }

  #start(run: () => void, delayMs: number): Timer {
    const process = this.#process.getStore()
    const timer = { run, process, atMs: this.nowMs + Math.max(1, Math.ceil(delayMs)) }
    this.#insert(timer)
    return timer
  }

  #insert(timer: Timer): void {
    let [low, high] = [0, this.#timers.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#timers[middle]?.atMs ?? 0) > timer.atMs) high = middle
      else low = middle + 1
    }
    this.#timers.splice(low, 0, timer)
  }

  #stop(timer: Timer): void {
    const index = this.#timers.indexOf(timer)
    if (index >= 0) this.#timers.splice(index, 1)
  }
}

/** Resolves after all promises that are under way, without a turn of the event loop. */
function settled(): Promise<void> {
  return new Promise((resolve) => {
    process.nextTick(resolve)
  })
}
