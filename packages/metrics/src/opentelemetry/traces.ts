import type { Attributes, TraceAPI } from '@opentelemetry/api'
import { type DecisionEvent, invalid, knownFields, type StoreCall } from '@sluice/core'

/** Options of `traces`. */
export interface TracesOptions {
  /** `trace` of @opentelemetry/api. */
  trace: Pick<TraceAPI, 'getActiveSpan' | 'getTracer'>
}

/** An observer that adds decisions to traces. */
export interface Traces {
  onDecision(event: DecisionEvent): void
  onStoreCall(call: StoreCall): void
}

/**
 * Adds decisions to the active span, as attributes and one event; each call to the store is a span.
 * Identities are not included. Without an OpenTelemetry SDK, nothing happens.
 * @example
 * import { trace } from '@opentelemetry/api'
 * app.use(rateLimit({ limit: 100, window: '1m', observers: [traces({ trace })] }))
 * @throws SluiceError if `trace` is not from @opentelemetry/api
 */
export function traces(options: TracesOptions): Traces {
  knownFields(options, 'traces', ['trace'])
  const { trace } = options
  if (typeof trace?.getActiveSpan !== 'function' || typeof trace.getTracer !== 'function') {
    throw invalid({ option: 'trace' }, trace, 'trace of @opentelemetry/api')
  }
  return {
    onDecision(event) {
      const span = trace.getActiveSpan()
      if (!span?.isRecording()) return
      const attributes = attributesOf(event)
      span.setAttributes(attributes)
      span.addEvent('sluice.decision', attributes)
    },
    onStoreCall({ requests, checks, startedAt, durationMs, failed }) {
      const tracer = trace.getTracer('@sluice/metrics')
      const attributes = { 'sluice.requests': requests, 'sluice.checks': checks }
      // A call contains checks of many requests: the active span is not its parent.
      const options = { startTime: startedAt, attributes, root: true }
      const span = tracer.startSpan('sluice.store.call', options)
      // 2 is OpenTelemetry's code for an error. Its constants would be a run-time import.
      if (failed) span.setStatus({ code: 2 })
      span.end(startedAt + durationMs)
    },
  }
}

function attributesOf({ decision, policy, answeredBy }: DecisionEvent): Attributes {
  const binding = decision.outcomes.find((outcome) => outcome.policy === policy)
  const isTold = !decision.allowed && Number.isFinite(decision.retryAfterMs)
  return {
    'sluice.allowed': decision.allowed,
    'sluice.answered_by': answeredBy,
    ...(policy && { 'sluice.policy': policy.name }),
    ...(binding?.remaining !== undefined && { 'sluice.remaining': binding.remaining }),
    ...(isTold && { 'sluice.retry_after_ms': decision.retryAfterMs }),
  }
}
