import type { Handler } from '@sluice/http'
import type { Metrics } from './collect-metrics.ts'
import type { Family, Sample } from './series.ts'

/** Text formats that Prometheus reads, and their content types. */
const contentTypes = {
  prometheus: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
}

type ExpositionFormat = keyof typeof contentTypes

/**
 * A page for Prometheus, for an adapter's `mount`. Put it in front of the limiter, or scrapes are
 * limited too.
 * @example
 * app.use('/metrics', mount(metricsPage(metrics)))
 */
export function metricsPage(metrics: Pick<Metrics, 'read'>): Handler {
  return async ({ method, path, header }) => {
    if (path !== '/') return undefined
    if (method !== 'GET' && method !== 'HEAD')
      return { status: 405, headers: { Allow: 'GET, HEAD' } }
    const wantsOpenMetrics = header('accept')?.includes('application/openmetrics-text')
    const format = wantsOpenMetrics ? 'openmetrics' : 'prometheus'
    const headers = {
      'Content-Type': contentTypes[format],
      'Cache-Control': 'no-store',
      Vary: 'Accept',
    }
    return { status: 200, headers, body: exposition(await metrics.read(), format) }
  }
}

/** Formats metrics as text: Prometheus format 0.0.4, or OpenMetrics 1.0. */
function exposition(families: readonly Family[], format: ExpositionFormat): string {
  const lines = families
    .filter(({ samples }) => samples.length > 0)
    .flatMap((family) => [...head(family, format), ...family.samples.flatMap(linesOf(family))])
  if (format === 'openmetrics') lines.push('# EOF')
  return `${lines.join('\n')}\n`
}

function head({ name, instrument }: Family, format: ExpositionFormat): readonly string[] {
  const { kind, help } = instrument
  // In OpenMetrics, a counter's name lacks the suffix of its samples.
  const title = format === 'openmetrics' && kind === 'counter' ? name.replace(/_total$/, '') : name
  return [`# HELP ${title} ${escaped(help, /[\\\n]/g)}`, `# TYPE ${title} ${kind}`]
}

function linesOf({ name, instrument }: Family): (sample: Sample) => readonly string[] {
  const { labels: names, buckets: bounds = [] } = instrument
  return ({ labels, value, buckets }) => {
    const pairs = labels.map((label, index) => `${names[index]}="${escaped(label, /[\\"\n]/g)}"`)
    if (!buckets) return [`${name}${braced(pairs)} ${numberText(value)}`]
    const [rows, all] = cumulated(buckets, bounds)
    const lines = rows.map(
      ({ le, count }) => `${name}_bucket${braced([...pairs, `le="${le}"`])} ${count}`,
    )
    const rest = braced(pairs)
    return [...lines, `${name}_sum${rest} ${numberText(value)}`, `${name}_count${rest} ${all}`]
  }
}

function braced(pairs: readonly string[]): string {
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

/** Cumulative buckets, as Prometheus expects them, and the sum. */
export function cumulated(
  buckets: readonly number[],
  bounds: readonly number[],
): readonly [rows: readonly { readonly le: string; readonly count: number }[], all: number] {
  let count = 0
  const rows = buckets.map((inBucket, index) => {
    count += inBucket
    const bound = bounds[index]
    return { le: bound === undefined ? '+Inf' : floatText(bound), count }
  })
  return [rows, count]
}

/** A bucket must be the same series in both formats, so bounds use OpenMetrics notation. */
function floatText(bound: number): string {
  return Number.isInteger(bound) ? bound.toFixed(1) : numberText(bound)
}

function numberText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value)
}

/** @param special the characters to escape */
function escaped(text: string, special: RegExp): string {
  return text.replace(special, (char) => (char === '\n' ? '\\n' : `\\${char}`))
}
