// biome-ignore-all lint/performance/noReExportAll: they list what every adapter, and both entries, export

export {
  andThen,
  flag,
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
export * from './adapter/kit.ts'
export { handlerRequestOf, slashRedirect } from './adapter/mount.ts'
export { type RequestBody, readBody } from './adapter/request-body.ts'
export type { GuardPlace } from './guard/guard.ts'
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
export type { GuardFields, HttpPolicyOptions, Profiles, Routes } from './options/options.ts'
export type { ResponseCondition } from './options/settlement.ts'
export type { Answer, Delay, Pass, Verdict } from './request/passage.ts'
export type { ResponseField } from './request/response.ts'
export { unscopedKey } from './request/scope.ts'
export type { PerRequest } from './request/user-functions.ts'
export {
  type Problem,
  plainProblem,
  problemMediaType,
  quotaExceeded,
  reducedCapacity,
} from './responses/problem.ts'
export { fieldsOn } from './responses/response-fields.ts'
export type { RoutePattern, Router, RouteTable } from './routes/router.ts'
export type { PolicyGuard } from './stages/stages.ts'
