// Two regions share one limit. Then one of them is cut off from the global Redis, and comes back.
//   npm run example:regions
//   SECONDS=60 npm run example:regions        for longer than 24 seconds
import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, regionalStore } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { startLink, startRedis, stopAll } from './servers.ts'

const seconds = Number(process.env.SECONDS ?? 24)
const windowMs = 4_000
const policy = { name: 'api', limit: 100, window: windowMs }
// Each region is guaranteed 30 units of a window. They borrow the other 40.
const shares = { eu: 0.3, us: 0.3 }

/** Requests a second: one region asks for little, the other one for more than there is. */
const traffic = { eu: 5, us: 40 }

const clients: Redis[] = []
const admittedAt: number[] = []
let isEnding = false

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void end())
await run()
await end()

async function run(): Promise<void> {
  const [eu, us, global] = await Promise.all([startRedis(), startRedis(), startRedis()])
  const link = await startLink(global)
  const regions = [openRegion('eu', eu, global), openRegion('us', us, link.port)]

  console.log('second   eu passed    us passed   us refused')
  for (let second = 1; second <= seconds && !isEnding; second += 1) {
    if (second === Math.ceil(seconds / 3)) {
      link.cut()
      console.log('us is cut off from the global Redis: it keeps its share')
    }
    if (second === Math.ceil((2 * seconds) / 3)) {
      await link.heal()
      console.log('us is back: it borrows again')
    }
    await sleep(1_000)
    const [ofEu, ofUs] = regions.map((region) => region.take())
    const columns = [second, ofEu?.passed, ofUs?.passed, ofUs?.refused]
    console.log(columns.map((column) => String(column).padStart(6)).join('       '))
  }
  for (const region of regions) await region.close()
  console.log(`fullest window of both: ${fullestWindow()} of ${policy.limit}`)
}

/** A process of a region, under traffic. */
function openRegion(region: keyof typeof shares, localPort: number, globalPort: number) {
  const store = regionalStore({
    region,
    local: redisStore(connect(localPort)),
    global: redisStore(connect(globalPort)),
    shares,
  })
  const limiter = createLimiter({ policies: [policy], store })
  let counts = { passed: 0, refused: 0 }
  const timer = setInterval(async () => {
    const decision = await limiter.consume('tenant:42')
    if (decision.allowed) admittedAt.push(Date.now())
    counts[decision.allowed ? 'passed' : 'refused'] += 1
  }, 1_000 / traffic[region])
  return {
    /** Returns the counts since the last call. */
    take() {
      const taken = counts
      counts = { passed: 0, refused: 0 }
      return taken
    },
    async close() {
      clearInterval(timer)
      await limiter.close()
    },
  }
}

function connect(port: number): Redis {
  const client = new Redis(port, '127.0.0.1', { retryStrategy: () => 100 })
  // ioredis throws without a listener. Sluice tells of failures by itself.
  client.on('error', () => undefined)
  clients.push(client)
  return client
}

function fullestWindow(): number {
  let fullest = 0
  for (const end of admittedAt) {
    const inWindow = admittedAt.filter((at) => at > end - windowMs && at <= end)
    fullest = Math.max(fullest, inWindow.length)
  }
  return fullest
}

async function end(): Promise<void> {
  isEnding = true
  for (const client of clients) client.disconnect()
  await stopAll()
}
