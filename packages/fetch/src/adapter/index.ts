// The kit of adapters for frameworks over fetch: it imports nothing of Node.

export { FetchContext } from './context.ts'
export { createFetchGuard, type FetchInfo, type FetchOptions, type FetchReply } from './options.ts'
