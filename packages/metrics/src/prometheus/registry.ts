import { invalid, knownFields, SluiceError } from '@sluice/core'
import type { Metrics } from '../collect-metrics.ts'
import { type InstrumentName, instrumentNames, instruments } from '../instruments.ts'
import { cumulated } from '../metrics-page.ts'
import type { Family, Sample } from '../series.ts'

/** The part of a registry of prom-client 15 or @prometheus-io/client that Sluice uses. */
export interface PrometheusRegistry {
  getSingleMetric(name: string): unknown
  registerMetric(metric: never): void
}

/** Options of `prometheus`. */
export interface PrometheusOptions {
  /** The registry that your application already exposes, such as prom-client's `register`. */
  registry: PrometheusRegistry
}

/** Metrics by registry: adding the same metrics twice is fine. */
const registered = new WeakMap<PrometheusRegistry, Pick<Metrics, 'read'>>()

/**
 * Adds the metrics to a registry. They are read when the registry is read.
 * @example
 * import { register } from 'prom-client'
 * prometheus(metrics, { registry: register })
 * @throws SluiceError if it is not a registry, or has other metrics with these names
 */
export function prometheus(metrics: Pick<Metrics, 'read'>, options: PrometheusOptions): void {
  knownFields(options, 'prometheus', ['registry'])
  const { registry } = options
  if (!isRegistry(registry)) {
    throw invalid(
      { option: 'registry' },
      registry,
      'a Registry of prom-client 15 or @prometheus-io/client',
    )
  }
  const taken = instrumentNames.find((name) => registry.getSingleMetric(name) !== undefined)
  if (taken) {
    if (registered.get(registry) === metrics) return
    throw new SluiceError(
      'SLUICE_OPTION_INVALID',
      `registry: it already has a metric ${taken}, from other metrics; call prometheus() once per registry`,
    )
  }
  registered.set(registry, metrics)
  const reading = readOnce(metrics)
  for (const name of instrumentNames) {
    Reflect.apply(registry.registerMetric, registry, [readMetric(name, reading)])
  }
}

function isRegistry(registry: unknown): registry is PrometheusRegistry {
  if (typeof registry !== 'object' || registry === null) return false
  return ['getSingleMetric', 'registerMetric'].every(
    (method) => typeof Reflect.get(registry, method) === 'function',
  )
}

/** The metrics of one scrape: a registry reads all its metrics in one tick. */
function readOnce(metrics: Pick<Metrics, 'read'>): () => Promise<readonly Family[]> {
  let reading: Promise<readonly Family[]> | undefined
  return () => {
    reading ??= metrics.read().finally(() => {
      reading = undefined
    })
    return reading
  }
}

/** Creates a metric in the form that registries expect: they read its values and format them. */
function readMetric(name: InstrumentName, read: () => Promise<readonly Family[]>) {
  const { help, kind: type, labels: names, buckets: bounds = [], ...instrument } = instruments[name]
  const aggregator = instrument.aggregator ?? (type === 'gauge' ? 'max' : 'sum')

  function valuesOf({ labels: texts, value, buckets }: Sample) {
    const labels = Object.fromEntries(names.map((label, index) => [label, texts[index] ?? '']))
    // Without its own name it gets the metric's, with the suffix that the format requires.
    if (!buckets) return [{ value, labels, exemplar: undefined }]
    const part = (of: string, count: number, own: Readonly<Record<string, string>>) => {
      return { value: count, labels: own, metricName: `${name}_${of}`, exemplar: undefined }
    }
    const [rows, all] = cumulated(buckets, bounds)
    const values = rows.map(({ le, count }) => part('bucket', count, { le, ...labels }))
    return [...values, part('sum', value, labels), part('count', all, labels)]
  }

  return {
    // A registry in OpenMetrics mode removes the suffix of a counter's name.
    ...{ name: String(name), help, type, aggregator },
    async get() {
      const family = (await read()).find((each) => each.name === name)
      const values = (family?.samples ?? []).flatMap(valuesOf)
      return { name: this.name, help, type, aggregator, values }
    },
    /** Does nothing: Prometheus expects counters that only grow. */
    reset: () => undefined,
  }
}
