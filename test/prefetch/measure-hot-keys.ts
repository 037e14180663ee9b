// Measures what one hot key costs the shard of a Cluster that it lives on: without options, with prefetch, and with async.
//   npm run measure:hot-keys
//   ROUNDS=5 PER_SECOND=2000 npm run measure:hot-keys

import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, type Limiter } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import { Cluster, Redis } from 'ioredis'
import { readRedis } from '../bench/harness/redis-meter.ts'
import { startRedisCluster } from '../support/redis-cluster.ts'

const windowMs = 4_000
const perSecond = Number(process.env.PER_SECOND ?? 5_000)
const rounds = Number(process.env.ROUNDS ?? 3)
const perWindow = (perSecond * windowMs) / 1_000

const loads = [
  { name: 'a fifth of the limit', limit: 5 * perWindow },
  { name: 'three times the limit', limit: Math.round(perWindow / 3) },
]

/** The policies of one load, by what they have beside the limit. */
const policies = [
  { name: 'neither', optionsOf: () => ({}) },
  { name: 'prefetch', optionsOf: () => ({ prefetch: windowMs / 20 }) },
  {
    name: 'async',
    optionsOf: (limit: number) => ({ async: { maxUncounted: Math.floor(limit / 100) } }),
  },
]

interface Cost {
  readonly requests: number
  readonly calls: number
  readonly cpuUs: number
}

/** Asks for one unit of one key, so often a second, for one window. */
async function sendFor(limiter: Limiter): Promise<number> {
  const since = performance.now()
  let sent = 0
  for (let now = since; now < since + windowMs; now = performance.now()) {
    const due = Math.min(((now - since) / 1_000) * perSecond - sent, perSecond / 20)
    const answers = Array.from({ length: Math.floor(due) }, () => limiter.consume('hot'))
    sent += answers.length
    await Promise.all(answers)
    await sleep(1)
  }
  return sent
}

await using cluster = await startRedisCluster()
const controls = (await cluster.masters()).map(({ port }) => new Redis(port))
const client = new Cluster(cluster.ports.map((port) => ({ host: '127.0.0.1', port })))

/** The calls and the CPU time of the shard that works most. */
async function measure(work: () => Promise<number>): Promise<Cost> {
  const before = await Promise.all(controls.map(readRedis))
  const requests = await work()
  const after = await Promise.all(controls.map(readRedis))
  const costs = after.map(({ commands, cpuUs }, index) => ({
    requests,
    calls: commands - (before[index]?.commands ?? 0),
    cpuUs: cpuUs - (before[index]?.cpuUs ?? 0),
  }))
  return costs.reduce((most, cost) => (cost.calls > most.calls ? cost : most))
}

function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((one, other) => one - other)
  return sorted[Math.floor(sorted.length / 2)] ?? 0
}

console.log(
  'load | policy | requests a second | calls for 1,000 requests | CPU of Redis, µs a request',
)
for (const load of loads) {
  const measured = policies.map(({ name, optionsOf }) => {
    const store = redisStore(client, { prefix: name + load.limit })
    const policy = { name, limit: load.limit, window: windowMs, ...optionsOf(load.limit) }
    const limiter = createLimiter({ policies: [policy], store, deadlineMs: 10_000 })
    return { name, limiter, costs: [] as Cost[] }
  })
  for (let round = 0; round < rounds; round += 1) {
    for (const { limiter, costs } of measured) {
      // The first window fills the key, and makes it hot.
      await sendFor(limiter)
      costs.push(await measure(() => sendFor(limiter)))
    }
  }
  for (const { name, costs } of measured) {
    const figures = [
      median(costs.map(({ requests }) => requests / (windowMs / 1_000))).toFixed(0),
      median(costs.map(({ requests, calls }) => (1_000 * calls) / requests)).toFixed(1),
      median(costs.map(({ requests, cpuUs }) => cpuUs / requests)).toFixed(2),
    ]
    console.log([load.name, name, ...figures].join(' | '))
  }
}
process.exit(0)
