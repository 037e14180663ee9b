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
export {
  type RateLimit,
  type RateLimitHandler,
  type RateLimitOptions,
  rateLimit,
} from './rate-limit.ts'
