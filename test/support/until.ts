import { setTimeout as sleep } from 'node:timers/promises'

export interface UntilOptions {
  /** @default 20_000 */
  timeoutMs?: number
}

/** Asks again and again until it is so; a question that rejects is one that is not answered yet. */
export async function until(
  what: string,
  isSo: () => Promise<boolean>,
  { timeoutMs = 20_000 }: UntilOptions = {},
): Promise<void> {
  const deadline = Date.now() + timeoutMs
  let reason = ''
  for (;;) {
    try {
      if (await isSo()) return
      reason = ''
    } catch (error) {
      reason = `: ${error}`
    }
    if (Date.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${what}${reason}`)
    await sleep(25)
  }
}
