import { describe, expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { startRabbitmq } from '../support/rabbitmq-server.ts'
import { startRedis } from '../support/redis-server.ts'
import { isProof } from '../support/scale.ts'
import { until } from '../support/until.ts'
import { startInTest as start } from './start-example.ts'

async function order(url: string): Promise<unknown> {
  // BullMQ is loaded with the first order; on a busy machine that outlasts the deadline of the broker, which is a 503.
  const send = () => fetch(`${url}/reports?year=2026`, { method: 'POST' })
  let accepted = await send()
  await until('the broker answers', async () => {
    if (accepted.status === 503) accepted = await send()
    return accepted.status !== 503
  })
  expect(accepted.status).toBe(202)
  const monitor = `${url}${accepted.headers.get('location')}`
  let job: { status?: string; result?: unknown } = {}
  await until('it is done', async () => {
    job = (await (await fetch(monitor)).json()) as typeof job
    return job.status === 'done'
  })
  return job.result
}

const report = { report: expect.stringContaining('/reports?year=2026') }

/** What a client prints that ordered more than it may at once, and got it all. */
function expectServed(text: string): void {
  expect(text).toMatch(/order 1: 202, watch \/jobs\//)
  expect(text).toMatch(/POST waits \d+ ms for 'orders'/)
  expect(text).toMatch(/order 1: not done yet\n/)
  expect(text).toMatch(/order 1: 200 \{.*"status":"done".*\\"number\\":1/)
}

// Several processes that load everything from the sources, beside other tests.
describe('examples/queue', { timeout: 60_000 }, () => {
  it('answers 202, and has the result a little later, in memory', async () => {
    const port = await freePort()
    const text = await start('queue', { PORT: `${port}`, ORDERS: '6' }).printed(/and then/)
    expect(text).toContain('in the memory of this process')
    expectServed(text)
    expect(text).toContain('6 of 6 reports are there')
    expect(await order(`http://localhost:${port}`)).toEqual(report)
  })

  it.runIf(isProof)(
    'does so over BullMQ, with API, worker and client in processes of their own',
    async () => {
      await using redis = await startRedis()
      await expectServedByProcesses({ REDIS_URL: redis.url }, /with BullMQ/)
    },
  )

  it.runIf(isProof)(
    'does so over RabbitMQ, with API, worker and client in processes of their own',
    async () => {
      await using redis = await startRedis()
      await using rabbitmq = await startRabbitmq()
      const env = { BROKER: 'rabbitmq', REDIS_URL: redis.url, RABBITMQ_URL: rabbitmq.url }
      await expectServedByProcesses(env, /delivered by RabbitMQ/)
    },
    120_000,
  )
})

async function expectServedByProcesses(env: Record<string, string>, about: RegExp): Promise<void> {
  const port = await freePort()
  const worker = start('queue', { ...env, ROLE: 'worker' })
  const api = start('queue', { ...env, ROLE: 'api', PORT: `${port}` })
  await Promise.all([api.printed(/listening/), worker.printed(about)])
  expect(await order(`http://localhost:${port}`)).toEqual(report)
  const client = start('queue', { PORT: `${port}`, ROLE: 'client', ORDERS: '6' })
  expectServed(await client.printed(/6 of 6 reports/))
  expect(await client.ended()).toEqual({ code: 0, errors: '' })
  await Promise.all([worker, api, client].map((example) => example.stop()))
}

describe('examples/queue, calls to a third party', { timeout: 60_000 }, () => {
  it.runIf(isProof)('makes its calls without refusals', async () => {
    expect(await start('queue', { ROLE: 'outbound' }).printed(/10 calls made/)).toContain(
      'made, 0 refused',
    )
  })

  it.runIf(isProof)(
    'makes them from two processes at once, and records them in Redis',
    async () => {
      await using redis = await startRedis()
      const vendor = start('queue', { ROLE: 'vendor' })
      const [, VENDOR] = /party is (\S+)/.exec(await vendor.printed(/party is/)) ?? []
      const env = { ROLE: 'outbound', REDIS_URL: redis.url, VENDOR }
      const callers = [start('queue', env), start('queue', env)]
      const texts = callers.map((caller) => caller.printed(/10 calls made/))
      for (const text of await Promise.all(texts)) expect(text).toContain('made, 0 refused')
      const trail = JSON.stringify(await redis.cli('XRANGE', 'sluice:outbound', '-', '+'))
      expect(trail.match(/"type","call"/g)).toHaveLength(20)
    },
  )
})
