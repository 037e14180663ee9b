import { answerParent } from '../../support/child.ts'
import { checkTraffic } from '../harness/check-traffic.ts'
import { clientKeys, inTurn } from '../harness/client-keys.ts'
import type { Figures } from '../harness/figures.ts'
import { SimulatedClock } from '../harness/simulated-clock.ts'
import { churn } from './churn.ts'
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

interface Opened {
  readonly subject: MemorySubject
  readonly clock: SimulatedClock
  readonly nextKey: () => string
  readonly traffic: MemorySetting['traffic']
}

let opened: Opened | undefined

answerParent<MemoryProtocol>({
  open: (setting) => open(found(contender), setting),
  round: ({ durationMs }) => round(durationMs),
  churn: (setting) => {
    close()
    return churn(found(contender), setting)
  },
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
  opened = { subject, clock, nextKey: inTurn(keys), traffic }
  // A few keys drown in what else moves on the heap.
  if (count < 1_000) return {}
  return one.recordsUnits ? { bytesPerKey, bytesPerFullKey } : { bytesPerKey }
}

async function round(durationMs: number): Promise<Figures> {
  const { subject, clock, nextKey, traffic } = found(opened)
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
  checkTraffic(traffic, allowed / checks)
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
