export { checkDialects } from './dialect.ts'
export { exposedHeaders, mergeExposed } from './expose.ts'
export { formatFields, formatHeaders } from './format-headers.ts'
export type {
  Dialect,
  DialectFormat,
  FormatOptions,
  HeaderLine,
} from './formats/dialect-format.ts'
export { formats, rateLimitFields } from './formats/formats.ts'
export { type MergeRetryAfterOptions, mergeRetryAfter } from './merge-retry-after.ts'
export { type ParseOptions, parseHeaders } from './parse-headers.ts'
export type { HeaderReader, HeaderRecord, HeaderSource } from './parsers/header-source.ts'
export { parseHttpDate } from './parsers/http-date.ts'
export type { ParsedPolicy, ParsedRateLimit } from './parsers/parsed-rate-limit.ts'
export { parseRateLimit } from './parsers/rate-limit.ts'
export { parseRateLimitPolicy } from './parsers/rate-limit-policy.ts'
export { parseRetryAfter } from './parsers/retry-after.ts'
export { type PolicyNameProblem, policyNameProblem } from './values/policy-name.ts'
export type { PolicyState } from './values/policy-state.ts'
export { formatRetryAfter } from './values/retry-after.ts'
