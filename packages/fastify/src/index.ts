// biome-ignore lint/performance/noReExportAll: the kit lists what every adapter exports
export * from '@sluice/http/exports'
export { all, apiKey, bearer, firstOf, tenant, tiers, user } from './keys.ts'
export { mount } from './mount.ts'
export type {
  RateLimitHandler,
  RateLimitHook,
  RateLimitPluginOptions,
  RouteRateLimitOptions,
} from './options.ts'
export { rateLimitPlugin, rateLimitPlugin as default } from './rate-limit.ts'
