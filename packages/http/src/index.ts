// biome-ignore-all lint/performance/noReExportAll: it lists what every adapter exports

export {
  andThen,
  flag,
  functionOption,
  invalid,
  isOptions,
  isPromise,
  type LimiterEvent,
  type MaybePromise,
  type Observers,
  oneOf,
  orDefault,
  processWide,
  type SkipEvent,
  type StoreCall,
  warnOnce,
} from '@sluice/core'
export * from './adapter/exports.ts'
export { GuardedContext } from './adapter/framework-context.ts'
export { type RequestKeys, requestKeys } from './adapter/keys.ts'
export {
  type HandlerRequest,
  type HandlerResponse,
  type MountedRequest,
  mountedReply,
  slashRedirect,
} from './adapter/mount.ts'
export { ProxyWatch } from './adapter/proxy-watch.ts'
export { type RequestBody, readBody } from './adapter/request-body.ts'
export { settleAfter } from './adapter/response-end.ts'
export {
  type AdapterContext,
  hideOnRedirect,
  type Limiting,
  type Refusal,
  serve,
  throwingObjects,
  withLimiter,
} from './adapter/serve.ts'
export type { Guard, GuardPlace } from './guard/guard.ts'
export { createGuard } from './guard/live-guard.ts'
export { all, firstOf } from './keys/combine.ts'
export { apiKey, bearer } from './keys/headers.ts'
export { tenant, user } from './keys/identity.ts'
export type { MissingKey } from './keys/missing-key.ts'
export {
  defineKey,
  evidenceOf,
  keyOfIdentity,
  type ResolvedKey,
  resolveKey,
} from './keys/resolver.ts'
export type { Weekday } from './limits/schedule.ts'
export type { LimitOption, LimitValue } from './limits/source.ts'
export { tiers } from './limits/tiers.ts'
export type { Admission, AdmissionRequest, Taken } from './options/admission.ts'
export type {
  GuardOptions,
  LiveGuard,
  LiveGuardFields,
  LivePolicies,
  NamedCode,
  NamedValue,
  PolicyVersion,
} from './options/live-policies.ts'
export {
  checkResolver,
  type GuardPenalty,
  type Message,
  type Preflights,
} from './options/option-table.ts'
export type {
  GuardFields,
  GuardSettings,
  HttpPolicyOptions,
  NoPolicies,
  Profiles,
  RouteOverride,
  Routes,
} from './options/options.ts'
export type { ResponseCondition } from './options/settlement.ts'
export type { RequestContext } from './request/context.ts'
export {
  type HttpRequest,
  type HttpResponse,
  type RequestContent,
  type ResponseBody,
  type ResponseField,
  routeScope,
  type Scope,
  setFields,
  unscopedKey,
} from './request/exchange.ts'
export type { Answer, Delay, Hold, Pass, Passage, Reject, Verdict } from './request/passage.ts'
export type { PerRequest } from './request/user-functions.ts'
export {
  type Problem,
  plainProblem,
  problemMediaType,
  quotaExceeded,
  reducedCapacity,
} from './responses/problem.ts'
export { fieldsOn } from './responses/response-fields.ts'
export {
  laxRouting,
  type RoutePattern,
  type Router,
  type RouteTable,
  type Routing,
} from './routes/router.ts'
export type { PolicyGuard } from './stages/stages.ts'
