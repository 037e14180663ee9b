// biome-ignore lint/performance/noReExportAll: the kit lists what every adapter exports
export * from '@sluice/http/exports'
export type { FetchInfo } from './adapter/index.ts'
export type { FetchHandler, RateLimitHandler, RateLimitOptions } from './options.ts'
export { all, apiKey, bearer, firstOf, tenant, tiers, user } from './options.ts'
export { type FetchPassage, mount, type RateLimit, rateLimit } from './rate-limit.ts'
