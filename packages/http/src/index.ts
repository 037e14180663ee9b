export {
  andThen,
  createLimiter,
  type Decision,
  type DecisionEvent,
  type Duration,
  durationMs,
  type EnforcedShare,
  type FailureMode,
  flag,
  given,
  type InvalidEvent,
  invalid,
  isOptions,
  isPromise,
  type Limiter,
  type MaybePromise,
  memoryStore,
  type Outcome,
  oneOf,
  processWide,
  type ResilienceEvent,
  type ShadowEvent,
  SluiceError,
  type Store,
  type StoreErrorEvent,
  type StoreHealth,
  unlimited,
  warnOnce,
} from '@sluice/core'
export type { Dialect } from '@sluice/headers'
export type { Admission, AdmissionRequest, RequestContent, Taken } from './admission.ts'
export { continueWith } from './continue-with.ts'
export type { Exchange } from './exchange.ts'
export { createGuard, type Guard, type GuardSite } from './guard.ts'
export type { GuardFields, GuardOptions, GuardSettings, NoPolicies } from './guard-options.ts'
export type { Handler, HandlerRequest, HandlerResponse } from './handler.ts'
export type { Hold } from './holds/hold.ts'
export { type ClosingSocket, type EndingResponse, settleAfter } from './holds/settle-after.ts'
export type { HttpPolicyOptions } from './http-policy.ts'
export type { HttpRequest } from './http-request.ts'
export { all } from './keys/all.ts'
export { type ApiKeyOptions, apiKey } from './keys/api-key.ts'
export { bearer } from './keys/bearer.ts'
export type { CredentialOptions } from './keys/credential.ts'
export { firstOf } from './keys/first-of.ts'
export { header } from './keys/header.ts'
export type { Id } from './keys/id-key.ts'
export { type IpOptions, ip, ipKey } from './keys/ip.ts'
export {
  defineKey,
  type IdentityResolver,
  type KeyResolver,
  type ResolvedKey,
  resolveKey,
} from './keys/key-resolver.ts'
export type { MissingKey } from './keys/missing-key.ts'
export { ProxyWatch } from './keys/proxy-watch.ts'
export { route } from './keys/route.ts'
export { tenant } from './keys/tenant.ts'
export { user } from './keys/user.ts'
export { type AdaptiveLimit, type AdaptiveOptions, adaptive } from './limits/adaptive.ts'
export type { LimitOption, LimitSource, LimitValue } from './limits/limit-source.ts'
export type { ShedOptions } from './limits/load-shedder.ts'
export {
  type CpuOptions,
  cpu,
  eventLoopDelay,
  eventLoopUtilization,
} from './limits/process-signals.ts'
export { type ScheduleOptions, schedule } from './limits/schedule.ts'
export type { Signal, SignalOptions } from './limits/signal.ts'
export { type TierTable, tiers } from './limits/tiers.ts'
export type { ScheduleRule, Weekday } from './limits/time-slot.ts'
export type { AccessListOptions } from './lists/access-list.ts'
export {
  type Answer,
  type Delay,
  type Pass,
  type Passage,
  type Reject,
  type RejectBody,
  untouched,
  type Verdict,
} from './passage.ts'
export type { GuardPenalty } from './penalty-rule.ts'
export type { PerRequest } from './per-request.ts'
export type { PolicyGuard } from './policy-guard.ts'
export type { Message, Preflights } from './policy-guard-options.ts'
export {
  type HttpResponse,
  type ResponseField,
  setFields,
} from './responses/http-response.ts'
export {
  type Problem,
  plainProblem,
  problemMediaType,
  quotaExceeded,
  reducedCapacity,
} from './responses/problem.ts'
export { RateLimitError } from './responses/rate-limit-error.ts'
export { fieldsOnHead } from './responses/response-fields.ts'
export type { Profiles } from './routes/policy-catalogue.ts'
export type { RouteOverride } from './routes/route-override.ts'
export type { Routes } from './routes/route-rules.ts'
export type { Routing } from './routes/route-table.ts'
export { routeScope, type Scope } from './routes/scope.ts'
export { checkResolver } from './rule.ts'
export type { RequestDecision } from './settlement/request-decision.ts'
export type { EndedResponse, WhenOver } from './settlement/settlement-options.ts'
