import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { bundledScript } from '../support/bundled-script.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { isProof, scaled } from '../support/scale.ts'
import { until } from '../support/until.ts'
import type { FromWorker, Held, ToWorker } from './leak-worker.ts'

const CYCLES = scaled(5, 50)
const WARM_CYCLES = 5
const FROZEN_MS = 100
const HEAP_NOISE_BYTES = 3 * 2 ** 20

const script = await bundledScript(new URL('leak-worker.ts', import.meta.url))
let redis: RedisServer
let worker: Worker

beforeEach(async () => {
  redis = await startRedis()
  worker = startWorker(redis.port)
})

afterEach(async () => {
  worker.child.kill('SIGKILL')
  await redis.stop()
})

describe(`${CYCLES} faults, one after the other`, () => {
  it('leave no sockets, timers or memory behind: Redis frozen', { timeout: 60_000 }, async () => {
    await expectNoLeak(async () => {
      redis.pause()
      await worker.ask()
      await worker.ask()
      await sleep(FROZEN_MS)
      redis.resume()
      await worker.ask()
    })
  })

  it.runIf(isProof)(
    'leave no sockets, timers or memory behind: CLIENT KILL',
    { timeout: 60_000 },
    async () => {
      await expectNoLeak(async () => {
        const asked = worker.ask()
        await redis.cli('CLIENT', 'KILL', 'TYPE', 'normal')
        await asked
        await worker.ask()
        await sleep(FROZEN_MS)
      })
    },
  )
})

describe('a process whose limiter and client are closed', () => {
  it.runIf(isProof)('ends by itself while Redis answers', async () => {
    await worker.ask()
    expect(await worker.close()).toBe(0)
  })

  it('ends by itself while Redis is frozen and the breaker open', async () => {
    await worker.ask()
    redis.pause()
    for (let round = 0; round < 4; round += 1) await worker.ask()
    expect(await worker.close()).toBe(0)
  })

  it.runIf(isProof)('ends by itself while Redis is gone', async () => {
    await worker.ask()
    await redis.stop()
    for (let round = 0; round < 4; round += 1) await worker.ask()
    expect(await worker.close()).toBe(0)
  })
})

/** Compares what is held when all is quiet again after the first faults and after many more. */
async function expectNoLeak(cycle: () => Promise<void>): Promise<void> {
  for (let round = 0; round < WARM_CYCLES; round += 1) await cycle()
  const before = await worker.measureWhenCalm()
  for (let round = 0; round < CYCLES; round += 1) await cycle()
  const after = await worker.measureWhenCalm()
  expect(after.sockets).toBeLessThanOrEqual(before.sockets)
  expect(after.timers).toBeLessThanOrEqual(before.timers + 1)
  expect(after.heapBytes - before.heapBytes).toBeLessThan(HEAP_NOISE_BYTES)
  expect(worker.unhandled).toEqual([])
}

interface Worker {
  readonly child: ChildProcess
  readonly unhandled: readonly string[]
  /** Asks for some decisions, and resolves to who made them: the store, or something else. */
  ask(): Promise<string>
  measureWhenCalm(): Promise<Held>
  /** Resolves to the exit code, once the process has ended. */
  close(): Promise<number | null>
}

function startWorker(port: number): Worker {
  const child = fork(script, [String(port)], {
    execArgv: ['--expose-gc'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const unhandled: string[] = []
  child.on('message', (message: FromWorker) => {
    if (message.type === 'unhandled') unhandled.push(message.message)
  })
  const ask = async () => {
    const { from } = await answer(child, 'ask', 'asked')
    return from
  }
  return {
    child,
    unhandled,
    ask,
    async measureWhenCalm() {
      await until('all traffic is back at the store', async () => (await ask()) === 'store')
      // What late replies have set off is over, and the client's own timers are.
      await sleep(1_500)
      return (await answer(child, 'measure', 'measured')).held
    },
    async close() {
      const exited = once(child, 'exit')
      child.send('close' satisfies ToWorker)
      const patience = setTimeout(() => child.kill('SIGKILL'), 5_000)
      const [code] = await exited
      clearTimeout(patience)
      return code
    },
  }
}

/** Asks, and waits for an answer of a type; they come in the order of the questions. */
async function answer<Type extends FromWorker['type']>(
  child: ChildProcess,
  question: ToWorker,
  type: Type,
): Promise<Extract<FromWorker, { type: Type }>> {
  child.send(question)
  const signal = AbortSignal.timeout(15_000)
  for (;;) {
    const [message] = (await once(child, 'message', { signal })) as [FromWorker]
    if (message.type === type) return message as Extract<FromWorker, { type: Type }>
  }
}
