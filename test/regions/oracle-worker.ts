// One process of a region. It consumes as fast as it can, and writes what it admits to a file, with the time at which
// that was decided. A line is written at once, so that it outlives a SIGKILL.

import { openSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, regionalStore } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'

const [region = '', localUrl = '', globalUrl = '', file = '', seedText = '1', ...numbers] =
  process.argv.slice(2)
const [limit = 0, window = 0, regions = 1] = numbers.map(Number)
const output = openSync(file, 'a')
let seed = Number(seedText)

function random(): number {
  seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
  return seed / 2 ** 31
}

// The wall clock of this process is wrong, and is set now and then. The witness reads the one of the machine, at the
// moment at which the product reads its own.
const machineNow = Date.now
let skewMs = Math.round((random() - 0.5) * 20_000)
let decidedAt = 0
Date.now = () => {
  decidedAt = machineNow()
  return decidedAt + skewMs
}

function connect(url: string): Redis {
  const redis = new Redis(url, { maxRetriesPerRequest: 0, retryStrategy: () => 20 })
  redis.on('error', () => undefined)
  return redis
}

const clients = [connect(localUrl), connect(globalUrl)] as const
const share = 0.6 / regions
const store = regionalStore({
  region,
  local: redisStore(clients[0]),
  global: redisStore(clients[1]),
  shares: Object.fromEntries(Array.from({ length: regions }, (_, index) => [`r${index}`, share])),
  globalDeadlineMs: 50,
})
const limiter = createLimiter({
  policies: [
    { name: 'oracle', limit, window },
    { name: 'hot', limit, window, prefetch: window / 10 },
    { name: 'central', limit, window, reach: 'global' },
    { name: 'wide', limit: 1_000_000, window: '1m' },
  ],
  store,
  failureMode: 'closed',
  deadlineMs: 200,
  onStoreError: () => undefined,
})
const [oracle, hot, central, wide] = limiter.policies
if (!oracle || !hot || !central || !wide) throw new Error('no policies')
const policies = { plain: oracle, changing: oracle, refunded: oracle, hot, central }

async function consume(key: keyof typeof policies): Promise<void> {
  const policy = policies[key]
  const cost = random() < 0.9 ? 1 : 1 + Math.floor(random() * 5)
  // The limit of one key is lowered and raised, by the clock of the machine.
  const isLow = key === 'changing' && Math.floor(machineNow() / (3 * window)) % 2 === 1
  const asked = { policy, key, cost, limit: isLow ? limit / 2 : limit }
  const beside = wide && { policy: wide, key, cost: 1, limit: wide.limit }
  const askedAt = machineNow()
  const decision = await limiter.decide(beside && random() < 0.1 ? [beside, asked] : [asked])
  const here = decidedAt
  if (!decision.allowed) return
  const receipt = decision.outcomes.find((outcome) => outcome.policy === policy)?.receipt
  if (!receipt) throw new Error('an admission has no receipt')
  // A receipt of Redis has the time of Redis; that of a grant has none. If the process was stopped in between, nobody
  // knows the time.
  if (receipt.at === 0 && machineNow() - askedAt > 100) return
  const at = receipt.at === 0 ? here : receipt.at
  if (key !== 'refunded' || random() < 0.7) {
    writeSync(output, `admit ${key} ${at} ${cost}\n`)
    return
  }
  // The answer to a refund may be lost, so it counts as given back in any case.
  await limiter.refund(decision)
}

let isEnding = false
process.stdin.on('data', () => {
  isEnding = true
})
console.log('ready')
while (!isEnding) {
  const work: Promise<void>[] = []
  for (const key of ['plain', 'plain', 'changing', 'refunded', 'hot', 'hot', 'central'] as const) {
    for (let i = random() * 8; i > 0; i -= 1) work.push(consume(key))
  }
  await Promise.all(work)
  if (random() < 0.003) skewMs = Math.round((random() - 0.5) * 20_000)
  await sleep(random() * 8)
}
const own = store.regions().find((one) => one.region === region)
writeSync(output, `region ${region} ${own?.fromShare ?? 0} ${own?.borrowed ?? 0}\n`)
await limiter.close()
for (const client of clients) client.disconnect()
process.stdin.destroy()
