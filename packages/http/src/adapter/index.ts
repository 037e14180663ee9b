// biome-ignore-all lint/performance/noReExportAll: it lists what both entries export

export { checksOf } from '../lifecycle/decided.ts'
export { passWithoutFields, type RequestDecision } from '../request/passage.ts'
export { headerOf, sendByNode } from '../request/response.ts'
export { nodeRouter } from '../routes/node-router.ts'
export { passes } from '../stages/stages.ts'
export { createGuard } from './create-guard.ts'
export { FrameworkContext, NodeRequestContext } from './framework-context.ts'
export * from './kit.ts'
export { type Handler, handlerRequest } from './mount.ts'
export { fastifyTrustsAll } from './proxy-watch.ts'
export { beforeHead, settleAfter } from './response-end.ts'
export { continueWith, serveByNode } from './serve.ts'
