import { apiKey, rateLimit } from '@sluice/express'
import { bullmqBroker, createAdmission, createQueue } from '@sluice/queue'
import { redisStore } from '@sluice/redis'
import express from 'express'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { serve } from '../support/serve.ts'
import { until } from '../support/until.ts'

/** What a Redis that works keeps also on a machine which runs other tests. */
const PATIENT_MS = 15_000
const IMPATIENT_MS = 300

async function started(options = {}): Promise<RedisServer> {
  const server = await startRedis(options)
  onTestFinished(() => server.stop())
  return server
}

/** An API whose limits and queue are in a Redis each, and a worker. */
async function startApi(admit: 'always' | 'overflow', deadlineMs = PATIENT_MS) {
  const [limits, jobs] = [await started(), await started()]
  const client = new Redis(limits.url)
  onTestFinished(() => client.disconnect())
  const observers = { onError: () => undefined }
  const broker = bullmqBroker({ connection: jobs.url, deadlineMs, observers })
  onTestFinished(() => broker.close())
  const queue = createQueue({ broker, identity: apiKey() })
  const limiter = rateLimit({
    ...{ name: 'orders', limit: 10, window: '1h', key: apiKey(), store: redisStore(client) },
    deadlineMs: PATIENT_MS,
    admission: createAdmission({ queue, monitor: '/jobs', admit }),
  })
  const app = express()
  app.post('/orders', limiter, (_request, response) => void response.send('here'))
  const { url, close } = await serve(app)
  onTestFinished(close)
  async function ask(key?: string): Promise<Response> {
    const headers = { 'x-api-key': 'ada', ...(key && { 'idempotency-key': key }) }
    const response = await fetch(`${url}orders`, { method: 'POST', headers })
    await response.text()
    return response
  }
  const left = async () => (await limiter.limiter.peek('@key/ada')).outcomes[0]?.remaining
  return { jobs, ask, left }
}

describe('an admission over BullMQ', () => {
  it('holds up nobody without a key where its Redis is frozen and nothing has to be queued', async () => {
    const { jobs, ask } = await startApi('overflow', IMPATIENT_MS)
    jobs.pause()
    expect((await ask()).status).toBe(200)
    expect((await ask('"1"')).status).toBe(503)
    jobs.resume()
    await until('the broker answers again', async () => (await ask('"1"')).status === 200)
  })

  const memory = (max: number) => (jobs: RedisServer) => jobs.cli('CONFIG', 'SET', 'maxmemory', max)

  it.each<[string, (jobs: RedisServer) => unknown, (jobs: RedisServer) => unknown]>([
    ['frozen', (jobs) => jobs.pause(), (jobs) => jobs.resume()],
    ['refusing', memory(1), memory(0)],
    ['gone', (jobs) => jobs.kill(), ({ port }) => started({ port })],
  ])('is unavailable while its Redis is %s, and charges nothing', async (_how, breaks, mends) => {
    const { jobs, ask, left } = await startApi('always', IMPATIENT_MS)
    await until('it queues', async () => (await ask()).status === 202)
    await breaks(jobs)
    for (let i = 0; i < 3; i += 1) {
      const answer = await ask(`"${i}"`)
      expect(answer.status).toBe(503)
      expect(answer.headers.get('retry-after')).toBe('5')
      expect(answer.headers.get('content-type')).toBe('application/problem+json')
    }
    await until('what was taken is given back', async () => (await left()) === 9)
    await mends(jobs)
    await until('it queues again', async () => (await ask('"0"')).status < 300)
  })
})
