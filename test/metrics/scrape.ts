import { createLimiter, type LimiterOptions } from '@sluice/core'
import type { HandlerRequest } from '@sluice/http'
import { collectMetrics, type Metrics, metricsPage } from '@sluice/metrics'
import { expect } from 'vitest'
import { fakeTime as fake } from '../support/fake-time.ts'

export const fakeTime = (): void => fake(undefined, { now: 1_795_195_800_000 })

/** A limiter of 9 a minute, unless said otherwise, and its metrics. */
export function limited(options: object = {}, ...own: Parameters<typeof collectMetrics>) {
  const metrics = collectMetrics(...own)
  const shape = 'policies' in options ? {} : { name: 'api', limit: 9, window: '1m' }
  const all = { ...shape, observers: [metrics], ...options }
  return { metrics, limiter: createLimiter(all as LimiterOptions) }
}

/** What Prometheus asks the page, and some of it otherwise. */
export function pageRequest(own: Partial<HandlerRequest> = {}): HandlerRequest {
  return {
    ...{ method: 'GET', path: '/', originalPath: '/', query: new URLSearchParams() },
    ...{ route: undefined, ip: undefined, peer: undefined, native: {}, header: () => 'text/plain' },
    ...own,
  }
}

export async function scraped(metrics: Metrics, accept = 'text/plain'): Promise<string> {
  return String((await metricsPage(metrics)(pageRequest({ header: () => accept })))?.body)
}

export async function seriesValue(metrics: Metrics, series: string): Promise<number | undefined> {
  return (await seriesIn(metrics)).get(series)
}

/** Expects values of series on the page; `undefined` stands for a series that is not there. */
export async function expectSeries(
  metrics: Metrics,
  expected: Readonly<Record<string, number | undefined>>,
): Promise<void> {
  const all = await seriesIn(metrics)
  const found = Object.keys(expected).map((series) => [series, all.get(series)])
  expect(Object.fromEntries(found)).toEqual(expected)
}

async function seriesIn(metrics: Metrics): Promise<ReadonlyMap<string, number>> {
  const lines = (await scraped(metrics)).trimEnd().split('\n')
  return new Map(
    lines.map((line) => {
      const end = line.lastIndexOf(' ')
      return [line.slice(0, end), Number(line.slice(end + 1))]
    }),
  )
}
