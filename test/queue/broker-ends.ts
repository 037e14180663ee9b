import { setTimeout as sleep } from 'node:timers/promises'
import { createWorker, type JobHandler } from '@sluice/queue'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { until } from '../support/until.ts'
import { BrokerBench } from './broker-bench.ts'
import type { BrokerDriver } from './broker-drivers.ts'
import { newJob, roomy } from './new-job.ts'

/** How jobs end with every broker, and what is kept of them for how long. */
export function describeEnds(driver: BrokerDriver): void {
  describe('ends jobs', () => {
    const bench = BrokerBench.of(driver)
    const done = { outcome: 'done', result: null } as const
    const key = { key: 'order-1', fingerprint: 'a' }

    function worker(handler: JobHandler): void {
      const backoff = { base: 600, max: 600 }
      const worked = createWorker({ broker: bench.broker, handler, attempts: 2, backoff })
      onTestFinished(() => worked.close({ grace: 1 }))
    }

    it('runs a dead letter again that is older than it was worth', async () => {
      const job = await bench.enqueued(newJob({ expiresAt: Date.now() + 1_500 }))
      let isUp = false
      const handler = async (): Promise<string> => {
        if (isUp) return 'at last'
        throw new Error('it is down')
      }
      worker(handler)
      await bench.reaches(job.id, 'failed')
      await sleep(Math.max(0, (job.expiresAt ?? 0) - Date.now()))
      isUp = true
      expect(await bench.broker.retry(job.id)).toBe(true)
      await bench.reaches(job.id, 'done')
    })

    it('ends a job whose error is half of a character, or is cut within one', async () => {
      const job = await bench.enqueued(newJob())
      worker(() => Promise.reject(new Error(`\ud83d${'x'.repeat(1_021)}😀😀`)))
      await bench.reaches(job.id, 'failed')
      expect(await bench.broker.status(job.id)).toMatchObject({ attempts: 2 })
    })

    it('says of a job that nobody has begun to run in time that it expired, and gives its place away', async () => {
      const terms = { ...roomy, maxDepth: 2, maxDepthPerIdentity: 2 }
      const expiresAt = Date.now() + 60_000
      const first = await bench.enqueued(newJob({ expiresAt }), terms)
      const second = await bench.enqueued(newJob(), terms)
      expect(await bench.broker.enqueue(newJob(), terms)).toMatchObject({ outcome: 'full' })
      vi.useFakeTimers({ toFake: ['Date'], now: expiresAt })
      onTestFinished(() => void vi.useRealTimers())
      expect(await bench.broker.status(first.id)).toMatchObject({ state: 'expired' })
      expect(await bench.broker.cancel(first.id)).toBe('finished')
      const expired: string[] = []
      const onExpired = ({ id }: { id: string }): void => void expired.push(id)
      const third = await bench.enqueued(newJob(), { ...terms, onExpired })
      expect(expired).toEqual([first.id])
      expect(await bench.broker.depth()).toMatchObject({ depth: 2 })
      expect(await bench.broker.status(first.id)).toMatchObject({
        state: 'expired',
        identity: first.identity,
        attempts: 0,
      })
      const runs = bench.settling(done)
      await bench.reaches(third.id, 'done')
      expect(runs.map(({ id }) => id)).toEqual([second.id, third.id])
    })

    it('keeps an idempotency key while its job is open, and for the retention after its end', async () => {
      const terms = { ...roomy, retentionMs: 1_000, idempotency: key }
      const job = await bench.enqueued(newJob(), terms)
      await sleep(1_100)
      const known = { outcome: 'known', id: job.id }
      expect(await bench.broker.enqueue(newJob(), terms)).toEqual(known)
      bench.settling(done)
      await bench.reaches(job.id, 'done')
      expect(await bench.broker.enqueue(newJob(), terms)).toEqual(known)
      await until('the key is free', async () => {
        return (await bench.broker.enqueue(newJob(), terms)).outcome === 'enqueued'
      })
    })

    it('frees the idempotency key of a dead letter after the retention, and takes it back with the job', async () => {
      const terms = { ...roomy, retentionMs: 1_000, idempotency: key }
      const job = await bench.enqueued(newJob(), terms)
      bench.settling(
        { outcome: 'dead', error: 'no' },
        { outcome: 'retry', delayMs: 60_000, error: 'no' },
      )
      await bench.reaches(job.id, 'failed')
      const known = { outcome: 'known', id: job.id }
      expect(await bench.broker.enqueue(newJob(), terms)).toEqual(known)
      await sleep(1_050)
      expect(await bench.broker.retry(job.id)).toBe(true)
      expect(await bench.broker.enqueue(newJob(), terms)).toEqual(known)
    })

    it('tells of a job that was cancelled as long as it keeps outcomes', async () => {
      const { id } = await bench.enqueued(newJob(), { ...roomy, retentionMs: 1_000 })
      expect(await bench.broker.cancel(id)).toBe('cancelled')
      expect(await bench.broker.status(id)).toMatchObject({ state: 'cancelled' })
      await until('it is forgotten', async () => (await bench.broker.status(id)) === undefined)
    })

    it('does not say later of a job that was done that it was cancelled', async () => {
      const terms = { ...roomy, retentionMs: 1_000 }
      const { id } = await bench.enqueued(newJob(), terms)
      const finish: (() => void)[] = []
      bench.work(async () => {
        await new Promise<void>((resolve) => finish.push(resolve))
        return done
      })
      await until('it runs', async () => finish.length === 1)
      expect(await bench.broker.cancel(id)).toBe('cancelling')
      finish[0]?.()
      await bench.reaches(id, 'done')
      expect(await bench.broker.cancel(id)).toBe('finished')
      await sleep(1_050)
      // What is kept too long goes when something else ends.
      const other = await bench.enqueued(newJob(), terms)
      await until('it runs', async () => finish.length === 2)
      finish[1]?.()
      await bench.reaches(other.id, 'done')
      expect(await bench.broker.status(id)).toBeUndefined()
      expect(await bench.broker.cancel(id)).toBe('unknown')
    })

    it.each([
      ['outcomes', { outcome: 'done', result: 'x'.repeat(3_000) }, {}],
      ['dead letters', { outcome: 'dead', error: 'no' }, { payload: 'x'.repeat(3_000) }],
    ] as const)('keeps as many bytes of %s as it is told', async (_what, settlement, fields) => {
      await bench.replace({ maxKeptBytes: 12_000 })
      bench.settling(settlement)
      const ids: string[] = []
      for (let i = 0; i < 4; i += 1) {
        const { id } = await bench.enqueued(newJob(fields))
        ids.push(id)
        const ends: unknown[] = ['done', 'failed']
        await until('it has ended', async () =>
          ends.includes((await bench.broker.status(id))?.state),
        )
      }
      const kept = async () => {
        const all = await Promise.all(ids.map((id) => bench.broker.status(id)))
        return all.map((status) => status?.state)
      }
      const state = settlement.outcome === 'done' ? 'done' : 'failed'
      await until('the oldest are gone', async () => (await kept())[1] === undefined)
      expect(await kept()).toEqual([undefined, undefined, state, state])
      if (state === 'done') return
      // What runs again is no dead letter, and leaves room for others.
      expect(await bench.broker.deadLetters({ offset: 0, limit: 9 })).toHaveLength(2)
      expect(await bench.broker.retry(ids[2] ?? '')).toBe(true)
      await until('it has failed again', async () => (await kept())[2] === state)
      expect(await kept()).toEqual([undefined, undefined, state, state])
    })

    it('keeps as many outcomes as it is told', async () => {
      await bench.replace({ maxKept: 2 })
      const worker = bench.work(async () => done)
      const ids: string[] = []
      for (let i = 0; i < 4; i += 1) {
        const terms = { ...roomy, idempotency: { ...key, key: `order-${i}` } }
        const { id } = await bench.enqueued(newJob(), terms)
        ids.push(id)
        await bench.reaches(id, 'done')
      }
      const states = await Promise.all(
        ids.map(async (id) => (await bench.broker.status(id))?.state),
      )
      expect(states).toEqual([undefined, undefined, 'done', 'done'])
      // Nor do keys stand for what is not kept.
      expect(await bench.broker.find('user:1', 'order-0')).toBeUndefined()
      expect(await bench.broker.find('user:1', 'order-3')).toBe(ids[3])
      await worker.close()
      for (let i = 0; i < 3; i += 1) await bench.broker.cancel((await bench.enqueued()).id)
      expect(await bench.broker.status(ids[3] ?? '')).toBeUndefined()
    })
  })
}
