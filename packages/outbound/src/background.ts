import { errorText, maxTimerMs, warnOnce } from '@sluice/core'

/**
 * Waits without keeping the process alive, for work in the background. Uses the global timer, which
 * tests can fake.
 */
export function backgroundSleep(delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, delayMs).unref()
  })
}

/** Repeats work by a timer that does not keep the process alive. */
export function repeat(work: () => void, everyMs: number): NodeJS.Timeout {
  return setInterval(work, Math.min(Math.max(1, Math.floor(everyMs)), maxTimerMs)).unref()
}

/** Runs work that nobody waits for. An error becomes a warning, and ends no process. */
export function background(work: Promise<unknown>): void {
  work.catch((error: unknown) => {
    warnOnce(`an outbound failed in the background: ${errorText(error)}`)
  })
}
