/**
 * By the global timer, which tests can fake; that of `node:timers/promises` they cannot.
 * @param signal ends the sleep early
 */
export function sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve()
      return
    }
    const wake = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', wake)
      resolve()
    }
    const timer = setTimeout(wake, delayMs)
    signal?.addEventListener('abort', wake)
  })
}
