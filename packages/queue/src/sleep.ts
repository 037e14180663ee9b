/** By the global timer, which tests can fake; that of `node:timers/promises` they cannot. */
export function sleep(delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, delayMs)
  })
}
