// The kit of adapters for frameworks over fetch: it imports nothing of Node.

export { FetchContext, type FetchInfo, type FetchPlace, type FetchReply } from './fetch-context.ts'
export { createFetchGuard, type FetchOptions } from './fetch-guard.ts'
