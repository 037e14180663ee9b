// biome-ignore lint/performance/noReExportAll: the kit lists what every adapter exports
export * from '@sluice/http/exports'
export { RateLimit, RateLimitKey, SkipRateLimit } from './decorators.ts'
export type {
  HandlerRateLimit,
  HttpExchange,
  RateLimitHandler,
  RateLimitModuleOptions,
} from './options.ts'
export { all, apiKey, bearer, firstOf, tenant, tiers, user } from './options.ts'
export { RateLimitGuard, RateLimitModule } from './rate-limit.ts'
export { RateLimitException, RateLimitFilter } from './refusal.ts'
