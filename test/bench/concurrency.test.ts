import { Redis } from 'ioredis'
import { afterEach, describe, expect, it } from 'vitest'
import { startRedis } from '../support/redis-server.ts'
import { contenders } from './concurrency/concurrency-contenders.ts'
import { SteadyLogs } from './concurrency/steady-logs.ts'
import { clientKeys } from './harness/client-keys.ts'
import { coresIn } from './harness/pinning.ts'
import { benchOptions } from './options.ts'
import type { RedisSubject } from './subjects/redis-subject.ts'

const open: (() => unknown)[] = []

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

describe('the logs of the suite concurrency', () => {
  it('are full but for one unit, by the clock of the server', async () => {
    const { control, subject } = await opened()
    const identities = clientKeys(40)
    const steady = await SteadyLogs.open(control, subject, identities)
    await steady.fill(1)
    for (const identity of identities) {
      expect(await subject.check(identity)).toBe(true)
      expect(await subject.check(identity)).toBe(false)
    }
  })

  it('let as many pass as were expected, again after each filling', async () => {
    const { control, subject } = await opened()
    const identities = clientKeys(20)
    const steady = await SteadyLogs.open(control, subject, identities)
    for (let round = 0; round < 2; round += 1) {
      await steady.fill(1_000_000)
      for (let times = 0; times < 10; times += 1) {
        for (const identity of identities) expect(await subject.check(identity)).toBe(true)
      }
    }
  })
})

describe('coresIn', () => {
  it('reads the list that taskset prints', () => {
    expect(coresIn("pid 12's current affinity list: 0,2-4\n")).toEqual([0, 2, 3, 4])
    expect(coresIn("pid 12's current affinity list: 1\n")).toEqual([1])
  })
})

describe('the command line', () => {
  const suites = [{ name: 'checks' }, { name: 'concurrency' }]

  it('runs all suites, or those that are named', () => {
    expect(benchOptions([], suites).suites).toEqual(['checks', 'concurrency'])
    expect(benchOptions(['--suite', 'checks'], suites).suites).toEqual(['checks'])
    expect(() => benchOptions(['--suite', 'nothing'], suites)).toThrow("there is no 'nothing'")
  })

  it('takes --case beside suites that can be measured in part only', () => {
    expect(benchOptions(['--suite', 'concurrency', '--case', '64'], suites).case).toBe('64')
    expect(() => benchOptions(['--suite', 'checks', '--case', '64'], suites)).toThrow('--case')
  })
})

/** The log of the suite on a server of its own. */
async function opened() {
  const server = await startRedis()
  open.push(() => server.stop())
  const control = new Redis(server.port)
  open.push(() => control.disconnect())
  const client = new Redis(server.port)
  open.push(() => client.disconnect())
  const subject: RedisSubject = await contenders.log.open({
    connect: async () => client,
    traffic: 'allowed',
    clock: 'server',
    limit: 100,
    windowMs: 3_600_000,
  })
  return { control, subject }
}
