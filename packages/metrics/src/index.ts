export {
  collectMetrics,
  type FleetSnapshot,
  type Metrics,
  type MetricsOptions,
} from './collect-metrics.ts'
export {
  type DenialLog,
  type DenialLogOptions,
  type DenialRecord,
  type DenialSummary,
  denialLog,
  type PolicyDenials,
} from './denial-log.ts'
export type { TopKey, TopKeysAnswer, TopKeysOptions } from './fleet-keys.ts'
export {
  type Instrument,
  type InstrumentName,
  instrumentNames,
  instruments,
  otelName,
} from './instruments.ts'
export { metricsPage } from './metrics-page.ts'
export { labelOf } from './policy-counts.ts'
export type { Family, Sample, Tap } from './series.ts'
export { type TopKeysBy, type TopKeysWindow, topKeysWindows } from './top-keys.ts'
export type { WatchedOutbound, WatchedQueue, WorkEvent } from './work-counts.ts'
