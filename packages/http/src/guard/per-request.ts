import type { MaybePromise } from '@sluice/core'

/** A value, or a function of the framework's request that finds it. */
export type PerRequest<Native, Value> = Value | ((native: Native) => MaybePromise<Value>)
