import type { Redis } from 'ioredis'
import { describe, expect, onTestFinished } from 'vitest'
import { it } from '../support/redis-test.ts'
import { contenders } from './concurrency/concurrency-contenders.ts'
import { SteadyLogs } from './concurrency/steady-logs.ts'
import { clientKeys } from './harness/client-keys.ts'
import { coresIn } from './harness/pinning.ts'
import { benchOptions } from './options.ts'

describe('the logs of the suite concurrency', () => {
  it('are full but for one unit, by the clock of the server', async ({ client }) => {
    const subject = await opened(client)
    const identities = clientKeys(40)
    const steady = await SteadyLogs.open(client, subject, identities)
    await steady.fill(1)
    for (const identity of identities) {
      expect(await subject.check(identity)).toBe(true)
      expect(await subject.check(identity)).toBe(false)
    }
  })

  it('let as many pass as were expected, again after each filling', async ({ client }) => {
    const subject = await opened(client)
    const identities = clientKeys(20)
    const steady = await SteadyLogs.open(client, subject, identities)
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
  const suites = [{ name: 'growth' }, { name: 'concurrency' }]

  it('runs all suites, or those that are named', () => {
    expect(benchOptions([], suites).suites).toEqual(['growth', 'concurrency'])
    expect(benchOptions(['--suite', 'growth'], suites).suites).toEqual(['growth'])
    expect(() => benchOptions(['--suite', 'nothing'], suites)).toThrow("there is no 'nothing'")
  })

  it('takes --case beside suites that can be measured in part only', () => {
    expect(benchOptions(['--suite', 'concurrency', '--case', '64'], suites).case).toBe('64')
    expect(() => benchOptions(['--suite', 'growth', '--case', '64'], suites)).toThrow('--case')
  })
})

/** The log of the suite on an empty server, by a connection of its own. */
async function opened(control: Redis) {
  await control.flushall()
  const client = control.duplicate()
  onTestFinished(() => client.disconnect())
  const traffic = { traffic: 'allowed', clock: 'server', limit: 100, windowMs: 3_600_000 } as const
  return contenders.log.open({ ...traffic, connect: async () => client })
}
