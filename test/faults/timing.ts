import { setTimeout as sleep } from 'node:timers/promises'

/** Milliseconds of the machine's monotonic clock, which all of its processes share and nothing steps. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

const POLL_MS = 10

/** Waits until a condition holds, and no longer than it may take. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  { withinMs, what }: { withinMs: number; what: string },
): Promise<void> {
  const deadline = monotonicMs() + withinMs
  while (!(await condition())) {
    if (monotonicMs() > deadline) throw new Error(`${what}: not within ${withinMs} ms`)
    await sleep(POLL_MS)
  }
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
