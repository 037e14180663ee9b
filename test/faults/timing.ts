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
