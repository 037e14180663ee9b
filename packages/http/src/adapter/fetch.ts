// The kit of adapters for runtimes of fetch: it imports nothing of Node.

export type { GuardOptions } from '../guard/live-options.ts'
export type { Reject, RequestDecision } from '../guard/passage.ts'
export { fieldsOn } from '../responses/response-fields.ts'
export { routeScope, type Scope } from '../routes/scope.ts'
export { FetchContext, FetchFields, type FetchRequest } from './fetch-context.ts'
export { answerOf, createFetchGuard, type FetchOptions } from './fetch-guard.ts'
export { type RequestKeys, requestKeys } from './keys.ts'
export { type Handler, handlerRequest } from './mount.ts'
export { setFields } from './response.ts'
export { hideOnRedirect } from './serve.ts'
