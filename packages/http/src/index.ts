export {
  andThen,
  createLimiter,
  type Decision,
  type DecisionEvent,
  type FailureMode,
  flag,
  given,
  type InvalidEvent,
  invalid,
  isPromise,
  type Limiter,
  type MaybePromise,
  memoryStore,
  type Outcome,
  oneOf,
  type ResilienceEvent,
  SluiceError,
  type Store,
  type StoreErrorEvent,
  type StoreHealth,
  unlimited,
  warnOnce,
} from '@sluice/core'
export type { Dialect } from '@sluice/headers'
export { continueWith } from './continue-with.ts'
export {
  createGuard,
  type Exchange,
  type Guard,
  type GuardPlace,
} from './guard.ts'
export type { GuardOptions, Message } from './guard-options.ts'
export { shorthandFields } from './guard-setup.ts'
export type { Handler, HandlerRequest, HandlerResponse } from './handler.ts'
export type {
  HttpPolicyOptions,
  LimitValue,
  PerRequest,
} from './http-policy.ts'
export type { HttpRequest } from './http-request.ts'
export {
  type HttpResponse,
  type ResponseField,
  setFields,
} from './http-response.ts'
export { all } from './keys/all.ts'
export { type ApiKeyOptions, apiKey } from './keys/api-key.ts'
export { bearer } from './keys/bearer.ts'
export { firstOf } from './keys/first-of.ts'
export { header } from './keys/header.ts'
export { type IpOptions, ip, ipKey } from './keys/ip.ts'
export {
  defineKey,
  type KeyResolver,
  type ResolvedKey,
} from './keys/key-resolver.ts'
export { route } from './keys/route.ts'
export type { MissingKey } from './missing-key.ts'
export type { Delay, Hold, Pass, Passage, Reject, RejectBody, Verdict } from './passage.ts'
export {
  type Problem,
  plainProblem,
  problemMediaType,
  quotaExceeded,
} from './problem.ts'
export { fieldsOnHead } from './response-fields.ts'
export { routeScope, type Scope } from './scope.ts'
export { type ClosingSocket, type EndingResponse, settleAfter } from './settle-after.ts'
