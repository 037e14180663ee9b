export {
  type AccessListOptions,
  type ApiKeyOptions,
  apiKey,
  bearer,
  createLimiter,
  type Decision,
  type DecisionEvent,
  type Dialect,
  type FailureMode,
  type Handler,
  header,
  type Id,
  type InvalidEvent,
  type IpOptions,
  ip,
  ipKey,
  type KeyResolver,
  type Limiter,
  memoryStore,
  type Outcome,
  type ResilienceEvent,
  route,
  SluiceError,
  type Store,
  type StoreErrorEvent,
  type StoreHealth,
  unlimited,
} from '@sluice/http'
export { all, firstOf, tenant, user } from './keys.ts'
export { mount } from './mount.ts'
export type {
  RateLimitHandler,
  RateLimitPluginOptions,
  RouteRateLimitOptions,
} from './options.ts'
export { rateLimitPlugin, rateLimitPlugin as default } from './rate-limit.ts'
