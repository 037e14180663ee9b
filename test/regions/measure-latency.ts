// Measures what a decision costs in a region and in the global store, by the round trip to the latter.
//   npm run measure:regions
//   ROUND_TRIPS=200 CHECKS=9 npm run measure:regions

import { createLimiter, type Limiter } from '@sluice/core'
import { startThreeServers } from './three-servers.ts'

const limit = 10_000_000
const checks = Number(process.env.CHECKS ?? 31)

/** The median of some sequential checks, in ms. */
async function median(ask: (index: number) => Promise<unknown>, count = checks): Promise<number> {
  const times: number[] = []
  for (let index = 0; index < count; index += 1) {
    const since = performance.now()
    await ask(index)
    times.push(performance.now() - since)
  }
  times.sort((one, other) => one - other)
  return times[Math.floor(count / 2)] ?? 0
}

/** Sends requests for three seconds, side by side, so that the key is hot and grants are there. */
async function heat(limiter: Limiter): Promise<void> {
  const endsAt = performance.now() + 3_000
  while (performance.now() < endsAt) {
    await Promise.all(Array.from({ length: 20 }, () => limiter.consume('hot')))
  }
}

console.log('round trip | share | pool, cold key | pool, hot key | global | global, prefetched')
const roundTrips = (process.env.ROUND_TRIPS ?? '1,20,80,200').split(',').map(Number)
for (const roundTripMs of roundTrips) {
  await using servers = await startThreeServers()
  const open = async (share: number, policy: object = {}) => {
    const { store, toGlobal } = await servers.open('eu', {
      redis: { prefix: `p${Math.random()}`.replace('.', '') },
      shares: { eu: share },
    })
    toGlobal.disturb({ requestDelayMs: roundTripMs / 2, replyDelayMs: roundTripMs / 2 })
    const policies = [{ name: 'api', limit, window: '1m', ...policy }] as const
    return createLimiter({ policies, store, deadlineMs: 30_000, failureMode: 'closed' })
  }
  const share = await open(0.9)
  const pool = await open(0.000_001)
  const hotPool = await open(0.000_001, { prefetch: '6s' })
  const central = await open(0.5, { reach: 'global' })
  const prefetched = await open(0.5, { reach: 'global', prefetch: '6s' })
  await share.consume('warm')
  await central.consume('warm')
  // Ten units are in the share of a key of the pool.
  const spend = (key: string) => pool.consume(key, { cost: 10 })
  await Promise.all(Array.from({ length: checks }, (_, index) => spend(`cold${index}`)))
  const ofShare = await median(() => share.consume('user'))
  const cold = await median((index) => pool.consume(`cold${index}`))
  const ofCentral = await median(() => central.consume('user'))
  // A key that has no requests for a while is not hot any more.
  await heat(hotPool)
  const hot = await median(() => hotPool.consume('hot'), 500)
  await heat(prefetched)
  const hotCentral = await median(() => prefetched.consume('hot'), 500)
  const row = [ofShare, cold, hot, ofCentral, hotCentral]
  console.log([`${roundTripMs} ms`, ...row.map((ms) => `${ms.toFixed(3)} ms`)].join(' | '))
}
process.exit(0)
