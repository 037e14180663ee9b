import { setTimeout as wait } from 'node:timers/promises'

/** Waits, in real time, until a condition holds: `vi.waitFor` would move the faked clock. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let i = 0; i < 500; i += 1) {
    if (await condition()) return
    await wait(10)
  }
  throw new Error('it never came to that')
}
