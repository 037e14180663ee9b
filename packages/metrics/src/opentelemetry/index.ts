export { type OpenTelemetryOptions, openTelemetry } from './meter.ts'
export { type Traces, type TracesOptions, traces } from './traces.ts'
