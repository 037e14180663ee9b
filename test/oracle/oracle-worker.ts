// One process of a fleet. It consumes as fast as it can, and writes a history of what it admits to a file. A line is written
// at once, so that it outlives a SIGKILL.

import { openSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { createCheckLimiter, regionalStore } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import type { HistoryLine } from '@sluice/testing/histories'
import { Redis } from 'ioredis'

/** The argument of the process, as JSON. */
export interface WorkerSettings {
  /** The way to the store that all processes share. */
  readonly url: string
  /** Where the process belongs to a region. */
  readonly region?: {
    readonly name: string
    readonly url: string
    readonly shares: Readonly<Record<string, number>>
  }
  /** The process decides before the count, instead of by grants. */
  readonly maxUncounted?: number
  readonly file: string
  readonly seed: number
  readonly limit: number
  readonly window: number
}

const settings: WorkerSettings = JSON.parse(process.argv[2] ?? '{}')
const { region, maxUncounted, limit, window } = settings
const output = openSync(settings.file, 'a')
let { seed } = settings

function random(): number {
  seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
  return seed / 2 ** 31
}

// The wall clock of this process is wrong, and is set now and then. The witness reads the one of the machine, at the moment
// at which the product reads its own: so a SIGSTOP after that does not blur the time of a decision.
const machineNow = Date.now
let skewMs = Math.round((random() - 0.5) * 20_000)
let decidedAt = 0
Date.now = () => {
  decidedAt = machineNow()
  return decidedAt + skewMs
}

const clients: Redis[] = []

function storeAt(url: string) {
  const redis = new Redis(url, { maxRetriesPerRequest: 0, retryStrategy: () => 20 })
  redis.on('error', () => undefined)
  clients.push(redis)
  return redisStore(redis)
}

const shared = storeAt(settings.url)
const regional =
  region &&
  regionalStore({
    region: region.name,
    local: storeAt(region.url),
    global: shared,
    shares: region.shares,
    globalDeadlineMs: 50,
  })

const [law, grants, reach] = [{ limit, window }, { prefetch: window / 10 }, 'global' as const]
const own = region ? {} : maxUncounted ? { async: { maxUncounted } } : grants
const limiter = createCheckLimiter({
  policies: [
    { name: 'oracle', ...law, ...own },
    { name: 'wide', limit: 1_000_000, window: '1m', ...('prefetch' in own && { prefetch: '1s' }) },
    ...(region
      ? [
          { name: 'hot', ...law, ...grants },
          { name: 'central', ...law, reach },
        ]
      : []),
  ],
  store: regional ?? shared,
  // Large grants, so that a fault in them shows.
  ...(region ? { deadlineMs: 200 } : { instances: 1, deadlineMs: 50 }),
  failureMode: 'closed',
  observers: { onStoreError: () => undefined },
})
const [oracle, wide, hot = oracle, central = oracle] = limiter.policies
if (!oracle || !wide || !hot || !central) throw new Error('no policies')
const policyOf = { plain: oracle, changing: oracle, refunded: oracle, reset: oracle, hot, central }
type Key = keyof typeof policyOf
// Mostly one key, which is hot on a slow machine too.
const keys: readonly Key[] = region
  ? ['plain', 'plain', 'changing', 'refunded', 'hot', 'hot', 'central']
  : [...Array<Key>(6).fill('plain'), 'changing', 'refunded', 'reset']

function tell(line: Omit<HistoryLine, 'process'>): void {
  writeSync(output, `${JSON.stringify({ process: `${process.pid}`, ...line })}\n`)
}

async function consume(key: Key): Promise<void> {
  if (!wide) return
  const policy = policyOf[key]
  const cost = random() < 0.9 ? 1 : 1 + Math.floor(random() * 5)
  // The limit of one key is lowered and raised, by the clock of the machine.
  const isLow = key === 'changing' && isLowAt(machineNow())
  const asked = { policy, key, cost, limit: isLow ? limit / 2 : limit }
  const beside = { policy: wide, key, cost: 1, limit: wide.limit }
  const askedAt = machineNow()
  decidedAt = askedAt
  const answer = limiter.decide(random() < 0.1 ? [beside, asked] : [asked])
  const decidedAtOnce = decidedAt
  const decision = await answer
  if (!decision.allowed) return
  const receipt = decision.outcomes.find((outcome) => outcome.policy === policy)?.receipt
  if (!receipt) throw new Error('an admission has no receipt')
  // A receipt of Redis has the time of Redis; that of a grant has none. In a region, the share may decide after the pool was asked.
  const start = receipt.at || (region ? askedAt : decidedAtOnce)
  const end = region && receipt.at === 0 ? machineNow() : start
  // A lowered limit binds once the grants have ended, and the processes that were stopped have gone on.
  const isBound = key === 'changing' && isLowAt(start) && start % (3 * window) > 1_500
  const line = { start, end, key, policy: policy.name, cost, limit: isBound ? limit / 2 : limit }
  const isRefunded = key === 'refunded' && random() >= 0.7
  tell({ ...line, decision: isRefunded ? 'refunded' : 'allowed' })
  if (isRefunded) await limiter.refund(decision)
}

function isLowAt(ms: number): boolean {
  return Math.floor(ms / (3 * window)) % 2 === 1
}

/** Without an answer, as after a SIGKILL, the reset may take place a while later. */
async function reset(): Promise<void> {
  const start = machineNow()
  const names = { key: 'reset', policy: 'oracle', decision: 'reset' } as const
  const line = { start, ...names, id: Math.random() }
  tell({ ...line, end: start + 1_500 })
  const done = () => tell({ ...line, end: machineNow() })
  await limiter.reset('reset').then(done, () => undefined)
}

let isEnding = false
process.stdin.on('data', () => {
  isEnding = true
})
console.log('ready')
while (!isEnding) {
  const work: Promise<void>[] = []
  for (const key of keys) {
    for (let i = random() * 8; i > 0; i -= 1) work.push(consume(key))
  }
  await Promise.all(work)
  if (random() < 0.003) skewMs = Math.round((random() - 0.5) * 20_000)
  if (keys.includes('reset') && random() < 0.001) await reset()
  await sleep(random() * (region ? 8 : 4))
}
const ofRegion = regional?.regions().find((one) => one.region === region?.name)
// Units that did not need the store of all processes.
console.log(ofRegion?.borrowed ?? limiter.storeHealth().grants.spent)
await limiter.close()
for (const client of clients) client.disconnect()
process.stdin.destroy()
