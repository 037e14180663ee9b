import { setTimeout as sleep } from 'node:timers/promises'

/** Milliseconds of the machine's monotonic clock, which all of its processes share and nothing steps. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

/** Does something again and again, never twice at once, until the function that it returns is called and resolves. */
export function repeatedly(everyMs: number, action: () => unknown): () => Promise<void> {
  const stop = new AbortController()
  const run = async () => {
    while (!stop.signal.aborted) {
      await action()
      // Aborted: it is over at once.
      await sleep(everyMs, undefined, { signal: stop.signal }).catch(() => undefined)
    }
  }
  const running = run()
  return () => {
    stop.abort()
    return running
  }
}

/** A delay of the event loop, which ended then. */
export type LoopDelay = readonly [endedAt: number, lengthMs: number]

const RESOLUTION_MS = 1
/** Timers count in whole milliseconds: to be late by one is no delay. */
const TIMER_GRAIN_MS = 1

/** Notes the delays of this process' event loop. By a timer of its own: the histogram of `perf_hooks` does not see the delay after which it is reset. */
export function watchLoop() {
  const delays: LoopDelay[] = []
  let lookedAt = monotonicMs()
  const timer = setInterval(() => {
    const now = monotonicMs()
    const lateMs = now - lookedAt - RESOLUTION_MS - TIMER_GRAIN_MS
    if (lateMs > 0) delays.push([now, lateMs])
    lookedAt = now
  }, RESOLUTION_MS)
  timer.unref()
  return { delays, [Symbol.dispose]: () => clearInterval(timer) }
}

export function delayWithin(delays: readonly LoopDelay[], from: number, to: number): number {
  let delayMs = 0
  for (const [endedAt, lengthMs] of delays) {
    const begunAt = endedAt - lengthMs
    if (begunAt > to) break
    delayMs += Math.max(0, Math.min(to, endedAt) - Math.max(from, begunAt))
  }
  return delayMs
}
