import { createFetch } from '@sluice/client'
import { collectMetrics } from '@sluice/metrics'
import { createQueue, createWorker, memoryBroker } from '@sluice/queue'
import { describe, expect, it, vi } from 'vitest'
import { expectSeries, fakeTime, scraped } from './scrape.ts'

fakeTime()

describe('metrics of queues and outbounds', () => {
  it('report depth, dead letters, waits, runs and retries', async () => {
    const metrics = collectMetrics()
    const broker = memoryBroker()
    const queue = createQueue({ broker, observers: [metrics] })
    await queue.enqueue({ identity: 'a', payload: 1 })
    vi.advanceTimersByTime(2_000)
    const of = `queue="${broker.name}"`
    await expectSeries(metrics, {
      [`sluice_queue_depth{${of}}`]: 1,
      [`sluice_queue_oldest_seconds{${of}}`]: 2,
    })
    const handler = vi.fn(async () => Promise.reject(new Error('no')))
    const worker = createWorker({ broker, handler, attempts: 2, observers: [metrics] })
    await vi.advanceTimersByTimeAsync(20_000)
    await worker.close()
    await expectSeries(metrics, {
      [`sluice_jobs_total{${of},event="enqueued"}`]: 1,
      [`sluice_jobs_total{${of},event="retried"}`]: 1,
      [`sluice_jobs_total{${of},event="dead"}`]: 1,
      [`sluice_queue_dead_letters{${of}}`]: 1,
      [`sluice_job_run_seconds_count{${of}}`]: 2,
      [`sluice_job_wait_seconds_count{${of}}`]: 2,
    })
  })

  it('start alert counters at 0, so that the first event is an increase', async () => {
    const metrics = collectMetrics()
    metrics.onQueue({ queue: 'mail', depth: async () => ({ depth: 0, dead: 0, oldestMs: 0 }) })
    await expectSeries(metrics, {
      'sluice_jobs_total{queue="mail",event="dead"}': 0,
      'sluice_series_overflow_total{metric="route"}': 0,
      'sluice_series_overflow_total{metric="sluice_jobs_total"}': 0,
      'sluice_series_overflow_total{metric="sluice_checks_total"}': 0,
    })
  })

  it('report how long client calls waited, not how long they could have', async () => {
    const metrics = collectMetrics()
    const headers = { 'Retry-After': '60' }
    const refusing = async () => new Response(undefined, { status: 429, headers })
    const fetch = createFetch({ fetch: refusing, observers: [metrics] })
    const controller = new AbortController()
    const { signal } = controller
    const call = fetch('https://api.example.com', { signal }).catch(() => undefined)
    await vi.advanceTimersByTimeAsync(5_000)
    const count = 'sluice_client_wait_seconds_count{reason="server"}'
    await expectSeries(metrics, { [count]: undefined })
    controller.abort()
    await call
    await expectSeries(metrics, { [count]: 1, [count.replace('count', 'sum')]: 5 })
  })

  it('omit a queue that does not report its depth', async () => {
    const metrics = collectMetrics()
    metrics.onQueue({ queue: 'away', depth: () => Promise.reject(new Error('gone')) })
    metrics.onQueue({
      queue: 'broken',
      depth: () => {
        throw new Error('gone')
      },
    })
    metrics.onQueue({ queue: 'hangs', depth: () => new Promise(() => undefined) })
    const page = scraped(metrics)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(await page).not.toContain('sluice_queue_depth{')
  })
})
