import type { InstrumentName } from './instruments.ts'

/** The name of a metric for OpenTelemetry: `sluice.policy_window.duration`. */
export function otelName(name: InstrumentName): string {
  return name
    .replace(/_total$/, '')
    .replace(/_seconds$/, '.duration')
    .replace(/^sluice_/, 'sluice.')
}
