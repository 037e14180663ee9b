// The kit for adapters of fetch frameworks. It imports nothing from Node.

export { FetchContext } from './context.ts'
export { createFetchGuard, type FetchInfo, type FetchOptions, type FetchReply } from './options.ts'
