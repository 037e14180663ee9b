import { errorText, warnOnce } from '@sluice/core'

/**
 * Waits without keeping the process alive, for background work. Uses the global timer, which tests
 * can fake.
 */
export function backgroundSleep(delayMs: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, delayMs).unref())
}

/** Runs work that nobody waits for. An error becomes a warning, and does not crash the process. */
export function background(work: Promise<unknown>): void {
  work.catch((error: unknown) => {
    warnOnce(`an outbound failed in the background: ${errorText(error)}`)
  })
}
