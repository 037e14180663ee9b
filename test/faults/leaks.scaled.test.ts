import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { bundledScript } from '../support/bundled-script.ts'
import { type Child, startChild } from '../support/child.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { isProof, scaled } from '../support/scale.ts'
import { until } from '../support/until.ts'
import type { Held, LeakProtocol } from './leak-worker.ts'

const CYCLES = scaled(5, 50)
const WARM_CYCLES = 5
const FROZEN_MS = 100
const HEAP_NOISE_BYTES = 3 * 2 ** 20

const script = await bundledScript(new URL('leak-worker.ts', import.meta.url))
let redis: RedisServer
let worker: Child<LeakProtocol>
let unhandled: string[]

beforeEach(async () => {
  redis = await startRedis()
  unhandled = []
  worker = startChild<LeakProtocol, string>(script, {
    ...{ args: [String(redis.port)], execArgv: ['--expose-gc'] },
    onTold: (reason) => unhandled.push(reason),
  })
})

afterEach(async () => {
  worker.stop()
  await redis.stop()
})

describe(`${CYCLES} faults, one after the other`, () => {
  it('leave no sockets, timers or memory behind: Redis frozen', { timeout: 60_000 }, async () => {
    await expectNoLeak(async () => {
      redis.pause()
      await ask()
      await ask()
      await sleep(FROZEN_MS)
      redis.resume()
      await ask()
    })
  })

  it('leave no sockets, timers or memory behind: new stores', { timeout: 60_000 }, async () => {
    await expectNoLeak(() => worker.ask('reopen', undefined))
  })

  it.runIf(isProof)(
    'leave no sockets, timers or memory behind: CLIENT KILL',
    { timeout: 60_000 },
    async () => {
      await expectNoLeak(async () => {
        const asked = ask()
        await redis.cli('CLIENT', 'KILL', 'TYPE', 'normal')
        await asked
        await ask()
        await sleep(FROZEN_MS)
      })
    },
  )
})

describe('a process whose limiter and client are closed', () => {
  it('ends by itself while Redis is frozen and the breaker open', async () => {
    await ask()
    redis.pause()
    for (let round = 0; round < 4; round += 1) await ask()
    expect(await close()).toBe(0)
  })

  it.runIf(isProof)('ends by itself while Redis is gone', async () => {
    await ask()
    await redis.stop()
    for (let round = 0; round < 4; round += 1) await ask()
    expect(await close()).toBe(0)
  })
})

/** Compares what is held when all is quiet again after the first faults and after many more. */
async function expectNoLeak(cycle: () => Promise<void>): Promise<void> {
  for (let round = 0; round < WARM_CYCLES; round += 1) await cycle()
  const before = await heldWhenCalm()
  for (let round = 0; round < CYCLES; round += 1) await cycle()
  const after = await heldWhenCalm()
  expect(after.sockets).toBeLessThanOrEqual(before.sockets)
  expect(after.timers).toBeLessThanOrEqual(before.timers + 1)
  expect(after.heapBytes - before.heapBytes).toBeLessThan(HEAP_NOISE_BYTES)
  expect(unhandled).toEqual([])
}

const ask = () => worker.ask('ask', undefined)

async function heldWhenCalm(): Promise<Held> {
  await until('all traffic is back at the store', async () => (await ask()) === 'store')
  // What late replies have set off is over once no more is held than a moment ago.
  let before = await worker.ask('measure', undefined)
  await until('nothing goes on', async () => {
    const { sockets, timers } = before
    await sleep(500)
    before = await worker.ask('measure', undefined)
    return before.sockets >= sockets && before.timers >= timers
  })
  return before
}

async function close(): Promise<number | null> {
  const patience = setTimeout(() => worker.stop(), 5_000)
  await worker.ask('close', undefined).catch(() => undefined)
  const code = await worker.ended
  clearTimeout(patience)
  return code
}
