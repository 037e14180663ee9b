import type { Meter, Observable, ObservableResult } from '@opentelemetry/api'
import { invalid, knownFields, SluiceError } from '@sluice/core'
import type { Metrics } from '../collect-metrics.ts'
import {
  type Instrument,
  type InstrumentName,
  instrumentNames,
  instruments,
  otelName,
} from '../instruments.ts'

/** Options of `openTelemetry`. */
export interface OpenTelemetryOptions {
  /** The meter to create the metrics with: `metrics.getMeter('my-api')` of @opentelemetry/api. */
  meter: Meter
}

/** Metrics by meter: adding the same metrics twice is fine, and has no effect. */
const metered = new WeakMap<Meter, Pick<Metrics, 'read' | 'tap'>>()

/**
 * Exports the metrics through an OpenTelemetry meter. Counters and gauges are read at export;
 * histograms are fed as values occur.
 * @throws SluiceError if it is not a meter, or already exports other metrics
 */
export function openTelemetry(
  metrics: Pick<Metrics, 'read' | 'tap'>,
  options: OpenTelemetryOptions,
): void {
  knownFields(options, 'openTelemetry', ['meter'])
  const { meter } = options
  if (typeof meter?.createObservableCounter !== 'function') {
    throw invalid({ option: 'meter' }, meter, "a meter, such as metrics.getMeter('my-api')")
  }
  const known = metered.get(meter)
  if (known === metrics) return
  if (known) {
    throw new SluiceError(
      'SLUICE_OPTION_INVALID',
      'meter: it already exports other metrics; call openTelemetry() once per meter',
    )
  }
  metered.set(meter, metrics)
  const observed = new Map<InstrumentName, Observable>()
  for (const name of instrumentNames) {
    if (instruments[name].kind === 'histogram') feed(metrics, name, meter)
    else observed.set(name, observable(name, meter))
  }
  meter.addBatchObservableCallback(
    async (result) => {
      for (const { name, instrument, samples } of await metrics.read()) {
        const target = observed.get(name)
        if (!target) continue
        for (const { labels, value } of samples) {
          if (Number.isFinite(value)) result.observe(target, value, attributes(instrument, labels))
        }
      }
    },
    [...observed.values()],
  )
}

function observable(name: InstrumentName, meter: Meter): Observable {
  const { kind, unit = 's', help } = instruments[name]
  const options = { unit, description: help }
  return kind === 'counter'
    ? meter.createObservableCounter(otelName(name), options)
    : meter.createObservableGauge(otelName(name), options)
}

function feed(metrics: Pick<Metrics, 'tap'>, name: InstrumentName, meter: Meter): void {
  const instrument = instruments[name]
  const { unit = 's', help, buckets = [] } = instrument
  const histogram = meter.createHistogram(otelName(name), {
    unit,
    description: help,
    advice: { explicitBucketBoundaries: [...buckets] },
  })
  metrics.tap(name, (value, labels) => histogram.record(value, attributes(instrument, labels)))
}

function attributes(
  { labels: names }: Instrument,
  labels: readonly string[],
): Parameters<ObservableResult['observe']>[1] {
  return Object.fromEntries(names.map((name, index) => [`sluice.${name}`, labels[index] ?? '']))
}
