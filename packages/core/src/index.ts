export type { Algorithm, KeyState } from './algorithms/algorithm.ts'
export { maxUnits } from './algorithms/max-units.ts'
export {
  type AlgorithmName,
  algorithmNames,
  type Counting,
  type CountingName,
} from './algorithms/table.ts'
export { type Check, maxKeyLength, Receipt } from './check.ts'
export { bindingIndex, type Decision, type DecisionSource } from './decision.ts'
export { digestOf } from './digest.ts'
export type { DocumentChange, Documents, FleetMember, SharedDocument } from './documents.ts'
export { type HotKey, type HotKeys, mergeHotKeys, SpaceSaving } from './hot-keys.ts'
export type { CostOptions, KeyOrDigest } from './limiter/arguments.ts'
export { createLimiter } from './limiter/create-limiter.ts'
export type { RefundOptions } from './limiter/follow-ups.ts'
export type { Limiter } from './limiter/limiter.ts'
export {
  checkTogether,
  type LimiterOptions,
  type LimiterSettings,
  limiterFields,
  policyList,
  type Without,
} from './limiter/limiter-options.ts'
export {
  isMemoryStore,
  type MemoryStore,
  type MemoryStoreOptions,
  memoryStore,
} from './memory-store/memory-store.ts'
export { DecisionTiming } from './observers/decision-timer.ts'
export { type JoinedObservers, joined, joinObservers } from './observers/join-observers.ts'
export { notify } from './observers/notify.ts'
export { DecisionNotifier } from './observers/notify-decided.ts'
export {
  checkObserverList,
  type DecisionEvent,
  type InvalidEvent,
  type LimiterEvent,
  type ObserverOptions,
  type Observers,
  type ShadowEvent,
  type SkipEvent,
  type StoreErrorEvent,
} from './observers/observers.ts'
export { type Duration, durationMs, windowMsOf } from './options/duration.ts'
export {
  type ErrorCode,
  errorCodes,
  errorText,
  isSluiceError,
  pageUrl,
  SluiceError,
} from './options/errors.ts'
export {
  flag,
  invalid,
  isOptions,
  isWholeNumber,
  knownFields,
  oneOf,
  onOneLine,
  orDefault,
  quote,
  wholeNumber,
} from './options/options.ts'
export { noteRelease } from './options/release.ts'
export { warn, warnOnce } from './options/warn.ts'
export type { AsyncOptions } from './policy/async.ts'
export { divideChecks } from './policy/divide-checks.ts'
export type { EnforcedShare, PolicyMode } from './policy/enforcement.ts'
export type { FailureMode } from './policy/failure-mode.ts'
export { withoutHeadroom } from './policy/headroom.ts'
export type { AutomaticPenalty, ManualPenalty, PenaltyOptions } from './policy/penalty.ts'
export {
  definePolicy,
  type Policy,
  type PolicyFields,
  type PolicyOptions,
  policyFields,
  type QuotaUnit,
  type Reach,
  unlimited,
  type WindowForm,
} from './policy/policy.ts'
export { type PolicySetVersion, Registrations, type SetTraits } from './policy/policy-registry.ts'
export type { RegionBound, RegionReport, RegionUse, StoreRegion } from './regions/region.ts'
export {
  type RegionalStore,
  type RegionalStoreOptions,
  regionalStore,
  withoutRegions,
} from './regions/regional-store.ts'
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
export { fnv1a } from './runtime/hash.ts'
export { andThen, isPromise, type MaybePromise } from './runtime/maybe-promise.ts'
export { processWide } from './runtime/process-wide.ts'
export type {
  Ask,
  Cancellation,
  FleetReport,
  ForgetOptions,
  Forgotten,
  Outcome,
  Store,
  StoreCall,
  StoreOp,
} from './store.ts'
export {
  endsWithin,
  maxTimerMs,
  sleep,
  timerMs,
  waitBoundMs,
  withDeadline,
} from './waiting/timers.ts'
export { TurnQueue } from './waiting/turn-queue.ts'
