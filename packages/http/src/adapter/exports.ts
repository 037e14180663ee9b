// The exports of every adapter, besides those with the types of its framework.

export {
  createLimiter,
  type Decision,
  type DecisionEvent,
  type Duration,
  durationMs,
  type EnforcedShare,
  type FailureMode,
  type InvalidEvent,
  type Limiter,
  memoryStore,
  type Outcome,
  type Peeked,
  type RegionalStore,
  type RegionalStoreOptions,
  type RegionReport,
  type Reservation,
  type ResilienceEvent,
  regionalStore,
  type ShadowEvent,
  SluiceError,
  type Store,
  type StoreErrorEvent,
  type StoreHealth,
  unlimited,
} from '@sluice/core'
export type { Dialect } from '@sluice/headers'
export type { AccessListOptions } from '../access/lists.ts'
export { type ApiKeyOptions, type CredentialOptions, header } from '../keys/headers.ts'
export type { Id } from '../keys/identity.ts'
export { type IpOptions, ip, ipKey } from '../keys/ip.ts'
export type { IdentityResolver, KeyResolver } from '../keys/resolver.ts'
export { route } from '../keys/route.ts'
export { type MeterOptions, meter } from '../lifecycle/meter.ts'
export { type AdaptiveLimit, type AdaptiveOptions, adaptive } from '../limits/adaptive.ts'
export {
  type CpuOptions,
  cpu,
  eventLoopDelay,
  eventLoopUtilization,
} from '../limits/process-signals.ts'
export { type ScheduleOptions, type ScheduleRule, schedule } from '../limits/schedule.ts'
export type { ShedOptions } from '../limits/shedder.ts'
export type { Signal, SignalOptions } from '../limits/signal.ts'
export type { LimitSource } from '../limits/source.ts'
export type { TierTable } from '../limits/tiers.ts'
export type { EndedResponse } from '../options/settlement.ts'
export type { RequestDecision } from '../request/passage.ts'
export { RateLimitError } from '../responses/rate-limit-error.ts'
export type { Handler } from './mount.ts'
