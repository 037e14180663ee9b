export type { CalendarWindow } from './algorithms/calendar.ts'
export { maxUnits } from './algorithms/max-units.ts'
export { type AlgorithmName, algorithmNames, type Counting } from './algorithms/table.ts'
export type { CostOptions, KeyOrDigest, PeekOptions, ReserveOptions } from './limiter/arguments.ts'
export { createCheckLimiter, createLimiter } from './limiter/create-limiter.ts'
export type { CheckLimiter, Limiter, RefundOptions } from './limiter/limiter.ts'
export {
  type LimiterOptions,
  type LimiterSettings,
  limiterFields,
} from './limiter/limiter-options.ts'
export type { Peeked, PeekedOutcome } from './limiter/peek.ts'
export {
  isMemoryStore,
  type MemoryStore,
  type MemoryStoreOptions,
  memoryStore,
} from './memory-store/memory-store.ts'
export {
  type Check,
  type CountedKey,
  divideChecks,
  type GrantCheck,
  type Held,
  maxKeyLength,
  Receipt,
} from './model/check.ts'
export { bindingIndex, type Decision, type DecisionSource } from './model/decision.ts'
export { checkSecret, digestOf } from './model/digest.ts'
export type { DocumentChange, Documents, FleetMember, SharedDocument } from './model/documents.ts'
export type { FailureMode, Policy, QuotaUnit, Reach } from './model/policy.ts'
export type { RegionBound, RegionReport, RegionUse, StoreRegion } from './model/region.ts'
export type { BreakerState, ResilienceEvent } from './model/resilience-event.ts'
export type {
  Ask,
  Cancellation,
  Change,
  DecidingOp,
  FleetReport,
  ForgetOptions,
  Forgotten,
  Granted,
  Outcome,
  Store,
  StoreCall,
  StoreDenials,
  StoreFleet,
  StoreOp,
  StoreScripts,
  StoreTelemetry,
} from './model/store.ts'
export type { ResilienceCounters, StoreHealth } from './model/store-health.ts'
export { DecisionNotifier, DecisionTiming } from './observers/decision-notifier.ts'
export { type JoinedObservers, joined, joinObservers, notify } from './observers/join-observers.ts'
export {
  type DecisionEvent,
  type InvalidEvent,
  type LimiterEvent,
  type ObserverOptions,
  type Observers,
  observerList,
  observersOption,
  type ShadowEvent,
  type SkipEvent,
  type StoreErrorEvent,
} from './observers/observers.ts'
export { type Duration, type DurationMs, durationMs, windowMsOf } from './options/duration.ts'
export { type ErrorCode, errorText, isSluiceError, pageUrl, SluiceError } from './options/errors.ts'
export {
  checkedElsewhere,
  checkOptions,
  choiceOption,
  countOption,
  durationOption,
  flagOption,
  functionOption,
  type Option,
  type Optional,
  type OptionsOf,
  objectOption,
  type RequiredOption,
  readOptions,
  type SettingsOf,
  textOption,
  type Without,
} from './options/option-table.ts'
export {
  flag,
  givenFields,
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
export { noteRelease, warn, warnOnce } from './options/warn.ts'
export type { AsyncOptions } from './policy/ledger-options.ts'
export type { AutomaticPenalty, ManualPenalty, PenaltyOptions } from './policy/penalty.ts'
export {
  definePolicy,
  type EnforcedShare,
  type PolicyFields,
  type PolicyOptions,
  policyFields,
  unlimited,
  type WindowForm,
  withoutHeadroom,
} from './policy/policy.ts'
export { checkTogether, policyList } from './policy/policy-list.ts'
export { type PolicySetVersion, Registrations, versionBeingMade } from './policy/policy-registry.ts'
export {
  type RegionalStore,
  type RegionalStoreOptions,
  regionalStore,
  withoutRegions,
} from './regions/regional-store.ts'
export type { BudgetSignal, Reservation, SettleOptions } from './reserve/reservation.ts'
export { fnv1a } from './runtime/hash.ts'
export { type HotKey, type HotKeys, mergeHotKeys, SpaceSaving } from './runtime/hot-keys.ts'
export { andThen, isPromise, type MaybePromise } from './runtime/maybe-promise.ts'
export { processWide } from './runtime/process-wide.ts'
export { ControlCall, controlled } from './waiting/control-call.ts'
export { endsWithin, maxTimerMs, sleep, timerMs, withDeadline } from './waiting/timers.ts'
export { TurnQueue } from './waiting/turn-queue.ts'
