// The part of the kit that both entries have: it needs no Node.

export type { Guard } from '../guard/guard.ts'
export type { GuardOptions } from '../options/live-policies.ts'
export type { GuardSettings, NoPolicies, RouteOverride } from '../options/options.ts'
export type { RequestContext } from '../request/context.ts'
export type { Hold } from '../request/hold.ts'
export type { Passage, Reject } from '../request/passage.ts'
export type { HttpRequest, RequestContent } from '../request/request.ts'
export { type HttpResponse, type ResponseBody, setFields } from '../request/response.ts'
export { routeScope, type Scope } from '../request/scope.ts'
export { laxRouting, type Routing } from '../routes/router.ts'
export { GuardedContext } from './framework-context.ts'
export { type RequestKeys, requestKeys } from './keys.ts'
export type { HandlerRequest, HandlerResponse } from './mount.ts'
export { ProxyWatch } from './proxy-watch.ts'
export {
  type AdapterContext,
  hideOnRedirect,
  type Limiting,
  type Refusal,
  serve,
  throwingObjects,
  withLimiter,
} from './serve.ts'
