export { invalid } from '@sluice/core'
export type { Guard } from '../guard/guard.ts'
export { checksOf } from '../lifecycle/decided.ts'
export type { GuardOptions } from '../options/live-policies.ts'
export type { GuardSettings, NoPolicies, RouteOverride } from '../options/options.ts'
export type { RequestContext } from '../request/context.ts'
export {
  type HttpRequest,
  type HttpResponse,
  headerOf,
  type RequestContent,
  type ResponseBody,
  routeScope,
  type Scope,
  setFields,
} from '../request/exchange.ts'
export {
  type Hold,
  type Passage,
  passWithoutFields,
  type Reject,
  type RequestDecision,
} from '../request/passage.ts'
export { nodeHttp, nodeRouter } from '../routes/node-router.ts'
export { laxRouting, type Routing } from '../routes/router.ts'
export { passes } from '../stages/stages.ts'
export { createGuard, type GlobalOptions } from './create-guard.ts'
export { FrameworkContext, GuardedContext, NodeRequestContext } from './framework-context.ts'
export { type RequestKeys, requestKeys } from './keys.ts'
export {
  type Handler,
  type HandlerRequest,
  type HandlerResponse,
  mountedReply,
  sendByNode,
} from './mount.ts'
export { fastifyTrustsAll, ProxyWatch } from './proxy-watch.ts'
export { beforeHead, settleAfter } from './response-end.ts'
export {
  type AdapterContext,
  continueWith,
  hideOnRedirect,
  type Limiting,
  type Refusal,
  type ServingGuard,
  serve,
  throwingObjects,
  withLimiter,
} from './serve.ts'
