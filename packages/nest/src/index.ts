// biome-ignore lint/performance/noReExportAll: the kit lists what every adapter exports
export * from '@sluice/http/exports'
export { RateLimit, RateLimitKey, SkipRateLimit } from './decorators.ts'
export {
  all,
  apiKey,
  bearer,
  firstOf,
  type HandlerRateLimit,
  type HttpExchange,
  type RateLimitHandler,
  type RateLimitModuleOptions,
  tenant,
  tiers,
  user,
} from './options.ts'
export { RateLimitGuard, RateLimitModule } from './rate-limit.ts'
export { RateLimitException, RateLimitFilter } from './refusal.ts'
