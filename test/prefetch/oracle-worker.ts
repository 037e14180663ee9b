// One process of a fleet. It consumes as fast as it can, and writes what it admits to a file, with the time at which
// that was decided. A line is written at once, so that it outlives a SIGKILL.

import { openSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'

const [
  url = '',
  file = '',
  seedText = '1',
  limitText = '100',
  windowText = '2000',
  uncounted = '0',
] = process.argv.slice(2)
const [limit, window, maxUncounted] = [Number(limitText), Number(windowText), Number(uncounted)]
const isAsync = maxUncounted > 0
const output = openSync(file, 'a')
let seed = Number(seedText)

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

const redis = new Redis(url, { maxRetriesPerRequest: 0, retryStrategy: () => 20 })
redis.on('error', () => undefined)
const limiter = createLimiter({
  policies: [
    {
      name: 'oracle',
      limit,
      window,
      ...(isAsync ? { async: { maxUncounted } } : { prefetch: window / 10 }),
    },
    { name: 'wide', limit: 1_000_000, window: '1m', ...(isAsync ? {} : { prefetch: '1s' }) },
  ],
  store: redisStore(redis),
  // Large grants, so that a fault in them shows.
  instances: 1,
  failureMode: 'closed',
  deadlineMs: 50,
  onStoreError: () => undefined,
})
const [policy, wide] = limiter.policies
if (!policy || !wide) throw new Error('no policies')

function tell(...fields: readonly (string | number)[]): void {
  writeSync(output, `${fields.join(' ')}\n`)
}

async function consume(key: string): Promise<void> {
  if (!policy || !wide) return
  const cost = random() < 0.9 ? 1 : 1 + Math.floor(random() * 5)
  // The limit of one key is lowered and raised, by the clock of the machine.
  const isLow = key === 'changing' && Math.floor(machineNow() / (3 * window)) % 2 === 1
  const asked = { policy, key, cost, limit: isLow ? limit / 2 : limit }
  const beside = { policy: wide, key, cost: 1, limit: wide.limit }
  decidedAt = machineNow()
  const answer = limiter.decide(random() < 0.1 ? [beside, asked] : [asked])
  const here = decidedAt
  const decision = await answer
  if (!decision.allowed) return
  const receipt = decision.outcomes.find((outcome) => outcome.policy === policy)?.receipt
  if (!receipt) throw new Error('an admission has no receipt')
  // A receipt of Redis has the time of Redis; that of a grant has none.
  const at = receipt.at === 0 ? here : receipt.at
  if (key !== 'refunded' || random() < 0.7) {
    tell('admit', key, at, cost)
    return
  }
  // The answer to a refund may be lost, so it counts as given back in any case.
  await limiter.refund(decision)
}

/** Without an answer, as after a SIGKILL, the reset may take place a while later. */
async function reset(): Promise<void> {
  const id = Math.random()
  tell('reset', 'reset', machineNow() + 1_500, id)
  const isDone = await limiter.reset('reset').then(
    () => true,
    () => false,
  )
  if (isDone) tell('reset', 'reset', machineNow(), id)
}

let isEnding = false
process.stdin.on('data', () => {
  isEnding = true
})
console.log('ready')
while (!isEnding) {
  const work: Promise<void>[] = []
  // Mostly one key, which is hot on a slow machine too.
  for (const key of [...Array(6).fill('plain'), 'changing', 'refunded', 'reset']) {
    for (let i = random() * 8; i > 0; i -= 1) work.push(consume(key))
  }
  await Promise.all(work)
  if (random() < 0.003) skewMs = Math.round((random() - 0.5) * 20_000)
  if (random() < 0.001) await reset()
  await sleep(random() * 4)
}
const { spent, taken, returned, lapsed } = limiter.storeHealth().grants
tell('grants', 'all', taken, spent)
console.log(JSON.stringify({ taken, spent, returned, lapsed }))
await limiter.close()
redis.disconnect()
process.stdin.destroy()
