export type { Algorithm, Counted } from './algorithms/algorithm.ts'
export { delayOf, leavesTrace, outcomeOf, waitMs } from './algorithms/counter.ts'
export { effectiveWindowMs, remainingUnits } from './algorithms/effective-window.ts'
export { type AlgorithmName, algorithmNames, type CountingName } from './algorithms/names.ts'
export { recordedAt } from './algorithms/sliding-log.ts'
export { algorithms } from './algorithms/table.ts'
export { type Check, maxKeyLength, Receipt } from './check.ts'
export { bindingIndex, type Decision, type DecisionSource } from './decision.ts'
export { type Duration, durationMs } from './duration.ts'
export { divideChecks, type EnforcedShare, type PolicyMode } from './enforcement.ts'
export { type ErrorCode, errorCodes, errorText, isSluiceError, SluiceError } from './errors.ts'
export type { FailureMode } from './failure-mode.ts'
export { fnv1a } from './fnv1a.ts'
export { withoutHeadroom } from './headroom.ts'
export type { RefundOptions } from './holdings.ts'
export { type CostOptions, createLimiter, type Limiter } from './limiter.ts'
export {
  checkTogether,
  type LimiterOptions,
  type LimiterSettings,
  limiterFields,
  policyList,
  type Without,
} from './limiter-options.ts'
export { andThen, isPromise, type MaybePromise } from './maybe-promise.ts'
export {
  isMemoryStore,
  type MemoryStore,
  type MemoryStoreOptions,
  memoryStore,
} from './memory-store/memory-store.ts'
export {
  type DecisionEvent,
  type InvalidEvent,
  notify,
  notifyDecided,
  type Observers,
  type ShadowEvent,
  type StoreErrorEvent,
} from './observers.ts'
export {
  flag,
  given,
  invalid,
  isOptions,
  isWholeNumber,
  knownFields,
  oneOf,
  onOneLine,
  show,
  wholeNumber,
} from './options.ts'
export type { AutomaticPenalty, ManualPenalty, PenaltyOptions } from './penalty.ts'
export {
  definePolicy,
  maxUnits,
  type Policy,
  type PolicyFields,
  type PolicyOptions,
  policyFields,
  type QuotaUnit,
  unlimited,
  type WindowForm,
  windowMsOf,
} from './policy.ts'
export { processWide } from './process-wide.ts'
export type { BreakerState } from './resilience/circuit-breaker.ts'
export type {
  BreakerEvent,
  ClockSkewEvent,
  DeadlineMissedEvent,
  FallbackEnteredEvent,
  FallbackLeftEvent,
  LateReplyEvent,
  ReconciledEvent,
  ResilienceEvent,
} from './resilience/resilience-event.ts'
export type { ResilienceCounters, StoreHealth } from './resilience/store-health.ts'
export type { Ask, Asker, Outcome, Store, StoreOp } from './store.ts'
export {
  endsWithin,
  longestTimerMs,
  sleep,
  timerMs,
  waitBoundMs,
  withDeadline,
} from './waiting/timers.ts'
export { TurnQueue } from './waiting/turn-queue.ts'
export { warnOnce } from './warn.ts'
