import { setTimeout as sleep } from 'node:timers/promises'

/** Taken here, so that a test that fakes the clock does not fake this one. */
const monotonicNs = process.hrtime.bigint

const pollMs = 10

/**
 * Waits, in real time, until a condition holds. A condition that throws or rejects does not hold yet. `vi.waitFor` is no help here, because
 * it moves the clock of a test that fakes it.
 */
export async function until(
  what: string,
  isSo: () => boolean | Promise<boolean>,
  { timeoutMs = 20_000 }: { readonly timeoutMs?: number } = {},
): Promise<void> {
  const deadline = monotonicNs() + BigInt(Math.ceil(timeoutMs)) * 1_000_000n
  let reason = ''
  for (;;) {
    try {
      if (await isSo()) return
      reason = ''
    } catch (error) {
      reason = `: ${error}`
    }
    if (monotonicNs() > deadline) throw new Error(`not within ${timeoutMs} ms: ${what}${reason}`)
    await sleep(pollMs)
  }
}
