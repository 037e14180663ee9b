import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import type { Figures } from '../harness/figures.ts'
import type { MemoryContender, MemorySetting } from './memory-subject.ts'

const checksPerTurn = 200
/** How long the last keys have been expired in the end. */
const afterwardsMs = 400

/**
 * So many fresh keys, and then a trickle of others while those expire: the longest time that the event loop was held up, by
 * collecting garbage, growing tables, sweeping, or timers that all come due.
 */
export async function churn(contender: MemoryContender, setting: MemorySetting): Promise<Figures> {
  const subject = contender.open(setting)
  let number = 0
  let longestPauseMs = 0
  let turnStartedAt = performance.now()

  async function turn(): Promise<void> {
    for (let i = 0; i < checksPerTurn; i++) {
      number += 1
      const passes = subject.check(`client-${number}`)
      if (typeof passes !== 'boolean') await passes
    }
    await nextTurn()
    const now = performance.now()
    longestPauseMs = Math.max(longestPauseMs, now - turnStartedAt)
    turnStartedAt = now
  }

  const startedAt = performance.now()
  while (number < setting.keys) await turn()
  const fillMs = performance.now() - startedAt
  const endsAt = performance.now() + setting.windowMs + afterwardsMs
  while (performance.now() < endsAt) {
    await turn()
    const wokenAt = performance.now() + 5
    await sleep(5)
    // Being late is a pause too; the sleep itself is none.
    turnStartedAt = Math.min(performance.now(), wokenAt)
  }
  subject.close?.()
  return { freshPerSecond: (setting.keys / fillMs) * 1000, longestPauseMs }
}
