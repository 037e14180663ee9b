import { invalid, knownFields, SluiceError } from '@sluice/core'
import type { Metrics } from '../collect-metrics.ts'
import {
  type Instrument,
  type InstrumentName,
  instrumentNames,
  instruments,
} from '../instruments.ts'
import { cumulated } from '../metrics-page.ts'
import type { Family, Sample } from '../series.ts'

/** The part that is used of a registry of prom-client 15 or @prometheus-io/client. */
export interface PrometheusRegistry {
  getSingleMetric(name: string): unknown
  registerMetric(metric: never): void
}

/** Options of `prometheus`. */
export interface PrometheusOptions {
  /** The registry that your application shows already, such as `register` of prom-client. */
  registry: PrometheusRegistry
}

/** By the registry that they stand in: the same metrics twice are fine. */
const registered = new WeakMap<PrometheusRegistry, Pick<Metrics, 'read'>>()

/**
 * Adds the metrics to a registry. They are read when the registry is.
 * @example
 * import { register } from 'prom-client'
 * prometheus(metrics, { registry: register })
 * @throws SluiceError when the registry is none, or has metrics of these names from elsewhere
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
      `registry: it has a metric ${taken} already, from other metrics; call prometheus() once for each registry`,
    )
  }
  registered.set(registry, metrics)
  const reading = readOnce(metrics)
  for (const name of instrumentNames) {
    const metric = new ReadMetric(name, reading)
    Reflect.apply(registry.registerMetric, registry, [metric])
  }
}

function isRegistry(registry: unknown): registry is PrometheusRegistry {
  if (typeof registry !== 'object' || registry === null) return false
  return ['getSingleMetric', 'registerMetric'].every(
    (method) => typeof Reflect.get(registry, method) === 'function',
  )
}

/** The metrics of one scrape: a registry asks its metrics one after the other in one tick. */
function readOnce(metrics: Pick<Metrics, 'read'>): () => Promise<readonly Family[]> {
  let reading: Promise<readonly Family[]> | undefined
  return () => {
    reading ??= metrics.read().finally(() => {
      reading = undefined
    })
    return reading
  }
}

/** A metric as registries know it: they ask for its values, and write them. */
class ReadMetric {
  /** A registry that shows OpenMetrics takes the end off the name of a counter. */
  name: string
  readonly help: string
  readonly type: Instrument['kind']
  readonly aggregator: 'sum' | 'max'
  readonly #own: InstrumentName
  readonly #instrument: Instrument
  readonly #read: () => Promise<readonly Family[]>

  constructor(name: InstrumentName, read: () => Promise<readonly Family[]>) {
    const instrument = instruments[name]
    this.name = name
    this.#own = name
    this.help = instrument.help
    this.type = instrument.kind
    this.aggregator = instrument.aggregator ?? (instrument.kind === 'gauge' ? 'max' : 'sum')
    this.#instrument = instrument
    this.#read = read
  }

  async get() {
    const { name, help, type, aggregator } = this
    const families = await this.#read()
    const family = families.find((each) => each.name === this.#own)
    const samples = family?.samples ?? []
    return { name, help, type, aggregator, values: samples.flatMap((each) => this.#values(each)) }
  }

  /** Does nothing: a counter that only grows is what Prometheus expects. */
  reset(): undefined {
    return undefined
  }

  #values({ labels: texts, value, buckets }: Sample) {
    const { labels: names, buckets: bounds = [] } = this.#instrument
    const labels = Object.fromEntries(names.map((name, index) => [name, texts[index] ?? '']))
    // Without a name of its own it gets that of the metric, with the end that the format wants.
    if (!buckets) return [{ value, labels, exemplar: undefined }]
    const [rows, all] = cumulated(buckets, bounds)
    const values = rows.map(({ le, count }) => this.#part('bucket', count, { le, ...labels }))
    return [...values, this.#part('sum', value, labels), this.#part('count', all, labels)]
  }

  #part(part: string, value: number, labels: Readonly<Record<string, string>>) {
    return { value, labels, metricName: `${this.#own}_${part}`, exemplar: undefined }
  }
}
