import type { Redis } from 'ioredis'
import { describe, expect, onTestFinished } from 'vitest'
import { it } from '../support/redis-test.ts'
import { contenders } from './concurrency/concurrency-contenders.ts'
import { SteadyLogs } from './concurrency/steady-logs.ts'
import { clientKeys } from './harness/client-keys.ts'
import { coresIn } from './harness/pinning.ts'

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

it('the cores of this process are read as taskset prints them', () => {
  expect(coresIn("pid 12's current affinity list: 0,2-4\n")).toEqual([0, 2, 3, 4])
  expect(coresIn("pid 12's current affinity list: 1\n")).toEqual([1])
})

async function opened(control: Redis) {
  await control.flushall()
  const client = control.duplicate()
  onTestFinished(() => client.disconnect())
  const traffic = { traffic: 'allowed', clock: 'server', limit: 100, windowMs: 3_600_000 } as const
  return contenders.log.open({ ...traffic, prefix: 'bench', connect: async () => client })
}
