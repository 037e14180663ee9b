import { expect, onTestFinished } from 'vitest'
import { it } from '../support/redis-test.ts'
import { contenders } from './concurrency/concurrency-contenders.ts'
import { SteadyLogs } from './concurrency/steady-logs.ts'
import { clientKeys } from './harness/client-keys.ts'

it('the logs of the suite concurrency are full but for one unit, by the clock of the server', async ({
  client: control,
}) => {
  await control.flushall()
  const client = control.duplicate()
  onTestFinished(() => client.disconnect())
  const traffic = { traffic: 'allowed', clock: 'server', limit: 100, windowMs: 3_600_000 } as const
  const connection = { prefix: 'bench', connect: async () => client }
  const subject = await contenders.log.open({ ...traffic, ...connection })
  const identities = clientKeys(40)
  const steady = await SteadyLogs.open(control, subject, identities)
  await steady.fill(1)
  for (const identity of identities) {
    expect(await subject.check(identity)).toBe(true)
    expect(await subject.check(identity)).toBe(false)
  }
})
