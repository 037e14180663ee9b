// biome-ignore lint/performance/noReExportAll: the kit lists what every adapter exports
export * from '@sluice/http/exports'
export type {
  RateLimitHandler,
  RateLimitHook,
  RateLimitPluginOptions,
  RouteRateLimitOptions,
} from './options.ts'
export { all, apiKey, bearer, firstOf, tenant, tiers, user } from './options.ts'
export { mount, rateLimitPlugin, rateLimitPlugin as default } from './rate-limit.ts'
