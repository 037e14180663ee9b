export {
  collectMetrics,
  type FleetSnapshot,
  type Metrics,
  type MetricsOptions,
  type TopKey,
  type TopKeysAnswer,
  type TopKeysOptions,
} from './collect-metrics.ts'
export {
  type DenialLog,
  type DenialLogOptions,
  type DenialRecord,
  type DenialSummary,
  denialLog,
  type PolicyDenials,
} from './denial-log.ts'
export {
  type Instrument,
  type InstrumentName,
  instrumentNames,
  instruments,
} from './instruments.ts'
export { metricsPage } from './metrics-page.ts'
export { otelName } from './otel-name.ts'
export type { Family, Sample, Tap } from './series.ts'
export { type TopKeysBy, type TopKeysWindow, topKeysWindows } from './top-keys.ts'
export type { WatchedOutbound, WatchedQueue, WorkEvent } from './work-counts.ts'
