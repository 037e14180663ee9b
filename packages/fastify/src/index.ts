export {
  type ApiKeyOptions,
  all,
  apiKey,
  bearer,
  createLimiter,
  type Decision,
  firstOf,
  type Handler,
  header,
  type IpOptions,
  ip,
  ipKey,
  type KeyResolver,
  memoryStore,
  route,
  SluiceError,
  unlimited,
} from '@sluice/http'
export { mount } from './mount.ts'
export type {
  RateLimitHandler,
  RateLimitPluginOptions,
  RouteRateLimitOptions,
} from './options.ts'
export { rateLimitPlugin, rateLimitPlugin as default } from './rate-limit.ts'
