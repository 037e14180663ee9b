import { errorText, longestTimerMs, warnOnce } from '@sluice/core'

/** Waits without keeping the process alive: for what nobody outside waits for. By the global timer, which tests can fake. */
export function backgroundSleep(delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, delayMs).unref()
  })
}

/** A timer for work that repeats, which does not keep the process alive either. */
export function repeat(work: () => void, everyMs: number): NodeJS.Timeout {
  return setInterval(work, Math.min(Math.max(1, Math.floor(everyMs)), longestTimerMs)).unref()
}

/** For work that nobody waits for: what it throws is told, and ends no process. */
export function background(work: Promise<unknown>): void {
  work.catch((error: unknown) => {
    warnOnce(`an outbound could not do what it had to: ${errorText(error)}`)
  })
}
