import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { answerParent } from '../../support/child.ts'
import { clientKeys, inTurn } from '../harness/client-keys.ts'
import { checkTraffic, type Figures } from '../harness/figures.ts'
import { SimulatedClock } from '../harness/simulated-clock.ts'
import { memoryContenders } from './memory-contenders.ts'
import type { MemoryContender, MemorySetting, MemorySubject } from './memory-subject.ts'
import { observeContenders } from './sluice-memory.ts'

export type MemoryProtocol = {
  /** Fills all keys. What a key takes on the heap: after its first unit, and when it is full. */
  open: { input: MemorySetting; output: Figures }
  round: { input: { durationMs: number }; output: Figures }
  /** Many fresh keys, which then expire, by the real clock. */
  churn: { input: MemorySetting; output: Figures }
}

const [name] = process.argv.slice(2)
const all = [...memoryContenders, ...observeContenders]
const contender = all.find((one) => one.name === name)
const slack = 1.05
const realNow = Date.now
/** How long (ms) the last keys of a churn have been expired in the end. */
const afterwardsMs = 400

let opened:
  | { subject: MemorySubject; clock: SimulatedClock; nextKey(): string; setting: MemorySetting }
  | undefined

answerParent<MemoryProtocol>({
  open: (setting) => open(found(contender), setting),
  round: ({ durationMs }) => round(durationMs),
  churn: (setting) => churn(found(contender), setting),
})

async function open(one: MemoryContender, setting: MemorySetting): Promise<Figures> {
  close()
  const { keys: count, limit, windowMs, traffic } = setting
  const clock = new SimulatedClock(realNow())
  Date.now = clock.read
  const before = heapBytes()
  const subject = one.open(setting)
  const keys = clientKeys(count)
  await checkAll(subject, keys)
  const bytesPerKey = (heapBytes() - before) / count
  if (one.fill) {
    const stepMs = one.fill === 'at once' ? 0 : traffic === 'denied' ? 1 : windowMs / limit
    for (let unit = 1; unit < limit; unit++) {
      clock.advance(stepMs)
      await checkAll(subject, keys)
    }
  }
  const bytesPerFullKey = (heapBytes() - before) / count
  clock.advance(traffic === 'allowed' ? windowMs / limit : 0)
  clock.stepMs = traffic === 'allowed' ? (windowMs / (limit * count)) * slack : 0
  opened = { subject, clock, nextKey: inTurn(keys), setting }
  // A few keys drown in what else moves on the heap.
  if (count < 1_000) return {}
  return one.recordsUnits ? { bytesPerKey, bytesPerFullKey } : { bytesPerKey }
}

async function round(durationMs: number): Promise<Figures> {
  const { subject, clock, nextKey, setting } = found(opened)
  let checks = 0
  let allowed = 0
  const cpuBefore = process.cpuUsage()
  const startedAt = performance.now()
  while (performance.now() - startedAt < durationMs) {
    for (let i = 0; i < 500; i++) {
      clock.tick()
      const passes = subject.check(nextKey())
      // Who answers at once need not wait; whoever promises is waited for.
      if (typeof passes === 'boolean' ? passes : await passes) allowed += 1
    }
    checks += 500
  }
  const elapsedMs = performance.now() - startedAt
  checkTraffic(setting.traffic, allowed / checks)
  const { user, system } = process.cpuUsage(cpuBefore)
  return {
    perSecond: (checks / elapsedMs) * 1000,
    nodeCpuUs: (user + system) / checks,
    allowedShare: allowed / checks,
  }
}

async function checkAll(subject: MemorySubject, keys: readonly string[]): Promise<void> {
  for (const key of keys) {
    const passes = subject.check(key)
    if (typeof passes !== 'boolean') await passes
  }
}

function heapBytes(): number {
  globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

function close(): void {
  opened?.subject.close?.()
  opened = undefined
  Date.now = realNow
}

function found<T>(value: T | undefined): T {
  if (value === undefined) throw new Error(`the worker of '${name}' has nothing to measure`)
  return value
}

/**
 * So many fresh keys, and then a trickle of others while those expire: the longest time that the event loop was held up, by
 * collecting garbage, growing tables, sweeping, or timers that all come due.
 */
async function churn(contender: MemoryContender, setting: MemorySetting): Promise<Figures> {
  close()
  const subject = contender.open(setting)
  let number = 0
  let longestPauseMs = 0
  let turnStartedAt = performance.now()

  async function turn(): Promise<void> {
    for (let i = 0; i < 200; i++) {
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
