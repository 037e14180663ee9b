import type { Store, StoreScripts } from '@sluice/core'
import { createWorker } from '@sluice/queue'
import { redisStore } from '@sluice/redis'
import { connect } from 'amqplib'
import { describe, expect, it } from 'vitest'
import { until } from '../../support/until.ts'
import { done, newJob, roomy } from '../broker-bench.ts'
import { alone, rabbitmqBench } from './bench.ts'

const bench = rabbitmqBench()

/** A store whose scripts can fail, or be followed by something, as when a process dies meanwhile. */
function storeWith(wrap: (run: () => Promise<unknown>, text: string) => Promise<unknown>): Store {
  const store = redisStore(bench.newClient())
  const run: StoreScripts['run'] = (...call) =>
    wrap(async () => store.scripts?.run(...call), call[0])
  return { ...store, apply: store.apply.bind(store), scripts: { run } }
}

describe('a job that waits long for its rate', () => {
  it('is put back at once, which is no run and no redelivery of it', async () => {
    const broker = bench.open()
    const attempts: string[] = []
    const options = {
      ...({ broker, store: redisStore(bench.newClient()), limit: 1, window: '11s' } as const),
      handler: async ({ payload, attempt }: { payload: unknown; attempt: number }) => {
        attempts.push(`${payload}: attempt ${attempt}`)
      },
    } as const
    const idempotency = { key: 'second', fingerprint: 'f' }
    const [first, second, third] = [newJob({ payload: 1 }), newJob({ payload: 2 }), newJob()]
    const late = newJob()
    await broker.enqueue(first, roomy)
    await broker.enqueue(second, { ...roomy, idempotency })
    await broker.enqueue(third, roomy)
    const worker = createWorker(options)
    await until('two wait', async () => {
      const { depth, running } = await broker.depth()
      return attempts.length === 1 && depth === 2 && running === 0 && worker.waiting === 0
    })
    expect(await broker.status(second.id)).toMatchObject({ state: 'pending' })
    expect(await broker.find(second.identity, 'second')).toBe(second.id)
    const connection = await connect(bench.rabbitmq.url)
    const channel = await connection.createChannel()
    const queue = `sluice.${broker.name}`
    const count = async (name: string) => (await channel.checkQueue(name)).messageCount
    await until('their messages wait', async () => (await count(`${queue}.delay.10000`)) === 2)
    await broker.enqueue(late, roomy)
    await until('the worker takes no other', async () => (await count(queue)) === 1)
    await worker.close()
    // Nothing was held, or it would be back.
    expect([await count(queue), await count(`${queue}.delay.10000`)]).toEqual([1, 2])
    for (const { id } of [third, late]) expect(await broker.cancel(id)).toBe('cancelled')
    expect(await broker.depth()).toMatchObject({ depth: 1, running: 0 })

    await until('they are back', async () => (await count(queue)) === 3)
    const delivered: unknown[] = []
    for (let i = 0; i < 3; i += 1) {
      const message = await channel.get(queue)
      if (!message) throw new Error('it was counted')
      delivered.push(JSON.parse(message.content.toString()))
      expect(message.fields.redelivered).toBe(false)
      expect(message.properties.headers?.['x-delivery-count'] ?? 0).toBe(0)
    }
    await connection.close()
    const put = [second, third].map(({ id }) => ({ id, number: 2 }))
    expect(delivered).toEqual([{ id: late.id, number: 1 }, ...put])
    const other = createWorker(options)
    await until('it is done', async () => (await broker.status(second.id))?.state === 'done')
    await other.close()
    expect(attempts).toEqual(['1: attempt 1', '2: attempt 1'])
  }, 60_000)
})

describe('a job that is put back', { timeout: 60_000 }, () => {
  it.each([
    ['after its record', /args\.uncounts/],
    ['after its message', /'ZREM', unpublished, args\.message/],
  ])('runs once more, if the channels are lost just %s', async (_when, script) => {
    const observer = bench.open()
    const [job, other] = [newJob(), newJob()]
    await observer.enqueue(job, roomy)
    let isToLose = true
    const store = storeWith(async (run, text) => {
      const reply = await run()
      if (isToLose && script.test(text) && ran.length > 0) {
        isToLose = false
        bench.loseChannels()
      }
      return reply
    })
    const ran: string[] = []
    const broker = bench.open({ name: observer.name, store, deadlineMs: 1_000 })
    const worker = broker.work(async ({ id }, _signal, { begin }) => {
      ran.push(id)
      if (ran.length === 1) return { outcome: 'postponed', delayMs: 1_000, pausesWorker: true }
      await begin()
      return done
    }, alone)
    await until('the channels are lost', () => !isToLose)
    // As if the process had died ten seconds ago.
    const unpublished = `{sluice:${broker.name}}:sluice:unpublished`
    await bench.redis.cli('ZADD', unpublished, 'XX', Date.now() - 20_000, `${job.id}:2`)
    await until('it is done', async () => (await observer.status(job.id))?.state === 'done')
    await until('it accepts jobs', async () => {
      return (await observer.enqueue(other, roomy).catch(() => undefined)) !== undefined
    })
    await until('all are done', async () => (await observer.depth()).depth === 0)
    await worker.close()
    expect(ran).toEqual([job.id, job.id, other.id])
    expect(Number(await bench.redis.cli('ZCARD', unpublished))).toBe(0)
  })
})

describe('a retry of a dead letter', () => {
  it('leaves a dead letter, or a job that waits, at whichever step its process dies', async () => {
    const observer = bench.open()
    const job = newJob()
    await observer.enqueue(job, roomy)
    const worker = observer.work(async () => ({ outcome: 'dead', error: 'no' }), alone)
    await until('it is dead', async () => (await observer.status(job.id))?.state === 'failed')
    await worker.close()
    for (let steps = 0; ; steps += 1) {
      let left = steps
      const store = storeWith(async (run) => {
        left -= 1
        if (left < 0) throw new Error('the process is gone')
        return run()
      })
      const dying = bench.open({ name: observer.name, store })
      const isRetried = await dying.retry(job.id).catch(() => false)
      const { state } = (await observer.status(job.id)) ?? {}
      const { depth, dead: letters } = await observer.depth()
      expect([state, depth, letters]).toEqual(isRetried ? ['pending', 1, 0] : ['failed', 0, 1])
      if (isRetried) break
      expect(steps).toBeLessThan(10)
    }
  })
})
