// The kit of adapters for runtimes of fetch: it imports nothing of Node.

export { createGuard } from '../guard/live-guard.ts'
export type { GuardOptions } from '../guard/live-options.ts'
export type { Reject, RequestDecision } from '../guard/passage.ts'
export { fieldsOn } from '../responses/headers.ts'
export type { Router } from '../routes/router.ts'
export { routeScope, type Scope } from '../routes/scope.ts'
export { FetchContext, FetchFields, type FetchRequest } from './fetch-context.ts'
export { type RequestKeys, requestKeys } from './keys.ts'
export { type Handler, type HandlerResponse, handlerRequest } from './mount.ts'
export { setFields } from './response.ts'
export { hideOnRedirect, serve, throwingObjects } from './serve.ts'
