import { type Metrics, metricsPage } from '@sluice/metrics'
import { afterEach, beforeEach, vi } from 'vitest'

/** Fakes the time of each test of a file. */
export function fakeTime(): void {
  beforeEach(() => {
    vi.useFakeTimers({ now: 1_795_195_800_000 })
  })
  afterEach(() => {
    vi.useRealTimers()
  })
}

/** The page as Prometheus reads it. */
export async function scraped(metrics: Metrics, accept = 'text/plain'): Promise<string> {
  const response = await metricsPage(metrics)({
    method: 'GET',
    path: '/',
    route: undefined,
    ip: undefined,
    header: () => accept,
    native: {},
    query: new URLSearchParams(),
    originalPath: '/',
    peer: undefined,
  })
  return String(response?.body)
}

/** The value of one series on the page. */
export async function seriesValue(metrics: Metrics, series: string): Promise<number | undefined> {
  const lines = (await scraped(metrics)).split('\n')
  const line = lines.find((each) => each.startsWith(`${series} `))
  return line === undefined ? undefined : Number(line.slice(series.length + 1))
}
