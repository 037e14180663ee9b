export type { Guard } from '../guard/guard.ts'
export type { GuardOptions } from '../guard/live-options.ts'
export type { GuardSettings, NoPolicies, RouteOverride } from '../guard/options.ts'
export type { Passage, Reject, RequestDecision } from '../guard/passage.ts'
export { passWithoutFields } from '../guard/passage.ts'
export { checksOf } from '../lifecycle/chargeable-decision.ts'
export type { Hold } from '../lifecycle/hold.ts'
export { nodeRouter } from '../routes/node-router.ts'
export { laxRouting, type Routing } from '../routes/router.ts'
export { routeScope, type Scope } from '../routes/scope.ts'
export type { RequestContext } from './context.ts'
export { createGuard } from './create-guard.ts'
export { FrameworkContext } from './framework-context.ts'
export { type RequestKeys, requestKeys } from './keys.ts'
export { type Handler, type HandlerRequest, type HandlerResponse, handlerRequest } from './mount.ts'
export { fastifyTrustsAll, ProxyWatch } from './proxy-watch.ts'
export type { HttpRequest, RequestContent } from './request.ts'
export {
  type HttpResponse,
  headerOf,
  type ResponseBody,
  sendByNode,
  setFields,
} from './response.ts'
export { beforeHead, settleAfter } from './response-end.ts'
export {
  type AdapterContext,
  continueWith,
  hideOnRedirect,
  serve,
  serve as admit,
  serveThen,
  serveThen as admitThen,
  throwingObjects,
} from './serve.ts'
