import { createLimiter, memoryStore, regionalStore } from '@sluice/core'
import { collectMetrics, type Metrics } from '@sluice/metrics'

/** Metrics of a process in which everything has happened that can be counted, once `connect` has brought them to a library. */
export async function everyMetric(connect: (metrics: Metrics) => void): Promise<void> {
  const metrics = collectMetrics()
  connect(metrics)
  const observers = [metrics]
  // It denies for longer than the limit does, also if all is decided within one millisecond.
  const penalty = { name: 'ban', after: 1, within: '1m', for: '2m' } as const
  const limiter = createLimiter({ name: 'api', limit: 1, window: '1m', penalty, observers })
  for (let i = 0; i < 4; i += 1) await limiter.consume('canary')

  const [local, global] = [memoryStore(), memoryStore()]
  const store = regionalStore({ region: 'eu', local, global, shares: { eu: 0.4 } })
  createLimiter({ name: 'divided', limit: 10, window: '1m', store, observers })

  metrics.onStoreCall({ requests: 1, checks: 2, startedAt: 0, durationMs: 3, failed: true })
  metrics.onResilience({ type: 'clock-skew', skewMs: 2_000 })
  metrics.onQueue({ queue: 'q', depth: async () => ({ depth: 3, dead: 1, oldestMs: 500 }) })
  metrics.onEvent({ type: 'started', queue: 'q', waitMs: 5 })
  metrics.onEvent({ type: 'done', queue: 'q', runMs: 5 })
  metrics.onOutbound({ outbound: 'vendor', waiting: 2 })
  metrics.onEvent({ type: 'call', outbound: 'vendor', waitMs: 5, runMs: 7, answer: 200 })
  metrics.onEvent({ type: 'refused', outbound: 'vendor', reason: 'full' })
  metrics.onEvent({ type: 'paused', outbound: 'vendor', forMs: 1_000 })
  metrics.onWaited({ reason: 'server', waitedMs: 100 })
  metrics.onGiveUp({ reason: 'retries' })
}
