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
  type InvalidEvent,
  invalid,
  isOptions,
  isPromise,
  type Limiter,
  type LimiterEvent,
  type MaybePromise,
  memoryStore,
  type Observers,
  type Outcome,
  oneOf,
  orDefault,
  type Peeked,
  processWide,
  type ResilienceEvent,
  type ShadowEvent,
  type SkipEvent,
  SluiceError,
  type Store,
  type StoreCall,
  type StoreErrorEvent,
  type StoreHealth,
  unlimited,
  warnOnce,
} from '@sluice/core'
export type { Dialect } from '@sluice/headers'
export type { AccessListOptions } from './access/lists.ts'
export { GuardedContext } from './adapter/framework-context.ts'
export { type RequestKeys, requestKeys } from './adapter/keys.ts'
export {
  type Handler,
  type HandlerRequest,
  type HandlerResponse,
  handlerRequestOf,
  slashRedirect,
} from './adapter/mount.ts'
export { ProxyWatch } from './adapter/proxy-watch.ts'
export { type RequestBody, readBody } from './adapter/request-body.ts'
export { type AdapterContext, hideOnRedirect, serve, throwingObjects } from './adapter/serve.ts'
export type { Guard, GuardPlace } from './guard/guard.ts'
export { createGuard } from './guard/live-guard.ts'
export type { PolicyGuard } from './guard/policy-guard.ts'
export { all, firstOf } from './keys/combine.ts'
export type { CredentialOptions } from './keys/headers.ts'
export { type ApiKeyOptions, apiKey, bearer, header } from './keys/headers.ts'
export type { Id } from './keys/identity.ts'
export { tenant, user } from './keys/identity.ts'
export { type IpOptions, ip, ipKey } from './keys/ip.ts'
export type { MissingKey } from './keys/missing-key.ts'
export {
  defineKey,
  evidenceOf,
  type IdentityResolver,
  type KeyResolver,
  keyOfIdentity,
  type ResolvedKey,
  resolveKey,
} from './keys/resolver.ts'
export { route } from './keys/route.ts'
export { type AdaptiveLimit, type AdaptiveOptions, adaptive } from './limits/adaptive.ts'
export {
  type CpuOptions,
  cpu,
  eventLoopDelay,
  eventLoopUtilization,
} from './limits/process-signals.ts'
export type { ScheduleRule, Weekday } from './limits/schedule.ts'
export { type ScheduleOptions, schedule } from './limits/schedule.ts'
export type { ShedOptions } from './limits/shedder.ts'
export type { Signal, SignalOptions } from './limits/signal.ts'
export type { LimitOption, LimitSource, LimitValue } from './limits/source.ts'
export { type TierTable, tiers } from './limits/tiers.ts'
export type { Admission, AdmissionRequest, Taken } from './options/admission.ts'
export type { GuardOptions, LiveGuardFields } from './options/live-options.ts'
export type {
  LiveGuard,
  LivePolicies,
  NamedCode,
  NamedValue,
  PolicyVersion,
} from './options/live-policies.ts'
export { checkResolver } from './options/option-table.ts'
export type {
  GuardFields,
  GuardPenalty,
  GuardSettings,
  Message,
  NoPolicies,
  Preflights,
  Profiles,
  RouteOverride,
  Routes,
} from './options/options.ts'
export type { HttpPolicyOptions } from './options/policy-options.ts'
export type { EndedResponse, ResponseCondition } from './options/settlement.ts'
export type { RequestContext } from './request/context.ts'
export type { Hold } from './request/hold.ts'
export type {
  Answer,
  Delay,
  Pass,
  Passage,
  Reject,
  RequestDecision,
  Verdict,
} from './request/passage.ts'
export type { HttpRequest, RequestContent } from './request/request.ts'
export {
  type HttpResponse,
  type ResponseBody,
  type ResponseField,
  setFields,
} from './request/response.ts'
export { routeScope, type Scope, unscopedKey } from './request/scope.ts'
export type { PerRequest } from './request/user-functions.ts'
export {
  type Problem,
  plainProblem,
  problemMediaType,
  quotaExceeded,
  reducedCapacity,
} from './responses/problem.ts'
export { RateLimitError } from './responses/rate-limit-error.ts'
export { fieldsOn } from './responses/response-fields.ts'
export {
  laxRouting,
  type RoutePattern,
  type Router,
  type RouteTable,
  type Routing,
} from './routes/router.ts'
