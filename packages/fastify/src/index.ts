// biome-ignore lint/performance/noReExportAll: the kit lists what every adapter exports
export * from '@sluice/http/exports'
export {
  all,
  apiKey,
  bearer,
  firstOf,
  type RateLimitHandler,
  type RateLimitHook,
  type RateLimitPluginOptions,
  type RouteRateLimitOptions,
  tenant,
  tiers,
  user,
} from './options.ts'
export { mount, rateLimitPlugin, rateLimitPlugin as default } from './rate-limit.ts'
