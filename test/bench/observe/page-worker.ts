import { createLimiter, memoryStore } from '@sluice/core'
import type { Handler } from '@sluice/http'
import { collectMetrics, metricsPage } from '@sluice/metrics'
import { answerParent } from '../harness/child.ts'
import { clientKeys } from '../harness/client-keys.ts'
import type { Figures } from '../harness/figures.ts'

/** What a process that shows metrics can be asked. */
export type PageProtocol = {
  /** Counts so many policies, each with as many keys as its sketch holds. */
  open: { input: { policies: number }; output: undefined }
  round: { input: { durationMs: number }; output: Figures }
}

const metrics = collectMetrics()
const page = metricsPage(metrics)
const request: Parameters<Handler>[0] = {
  ...{ method: 'GET', path: '/', route: undefined, ip: undefined, native: {} },
  ...{ query: new URLSearchParams(), header: () => undefined },
  ...{ originalPath: '/', peer: undefined },
}

answerParent<PageProtocol>({
  async open({ policies }) {
    const store = memoryStore({ maxKeys: 1_000_000 })
    const keys = clientKeys(1_000)
    for (let number = 1; number <= policies; number += 1) {
      const name = `policy-${number}`
      const limiter = createLimiter({ store, name, limit: 1, window: '1h', observers: [metrics] })
      for (const key of keys) await limiter.consume(key)
      await limiter.consume('client-1')
      // Routes, as HTTP would count them.
      metrics.onSkip({ request: undefined, route: `GET /${number}`, method: 'GET', reason: 'skip' })
      metrics.onSkip({
        request: undefined,
        route: `GET /${number}`,
        method: 'POST',
        reason: 'skip',
      })
    }
    return undefined
  },

  async round({ durationMs }) {
    let scrapes = 0
    let text = ''
    const startedAt = performance.now()
    const before = process.cpuUsage()
    while (performance.now() - startedAt < durationMs) {
      text = String((await page(request))?.body)
      scrapes += 1
    }
    const { user, system } = process.cpuUsage(before)
    const series = text.match(/^sluice_/gm)?.length ?? 0
    return { scrapeCpuMs: (user + system) / 1_000 / scrapes, series }
  },
})
