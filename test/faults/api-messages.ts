import type { FailureMode, PolicyOptions, ResilienceEvent } from '@sluice/core'
import type { SteppedClock } from './fault.ts'
import type { LoopDelay } from './timing.ts'

export type Framework = 'express' | 'fastify'

/** A route of an API, which is limited in a failure mode. */
export type Route = FailureMode

/** Where Redis is, on ports of 127.0.0.1: a server, or the sentinels or nodes that know where. */
export interface Connection {
  readonly kind: 'single' | 'sentinel' | 'cluster'
  readonly ports: readonly number[]
  /** What the sentinels call the master. */
  readonly name?: string
}

/** What an API process is started with, as JSON on its command line. */
export interface ApiSettings {
  readonly framework: Framework
  readonly connection: Connection
  readonly prefix: string
  readonly policies: readonly PolicyOptions[]
  /** Each is a route of its name, with a limiter of its own on the one store. */
  readonly modes: readonly Route[]
  readonly deadlineMs: number
  /** The size of the fleet, where it is pinned. */
  readonly instances: number | undefined
  /** Whether the store counts by a clock of the tests. */
  readonly ownClock: boolean
}

/** What a process is asked. */
export type ApiProtocol = {
  listen: { input: undefined; output: number }
  'step-clock': { input: { clock: SteppedClock; byMs: number }; output: undefined }
  report: { input: undefined; output: ApiReport }
  /** Closes server, store and client, and gives no answer: the process ends by itself. */
  close: { input: undefined; output: undefined }
}

/** What a process tells. Times are those of `monotonicMs`. */
export type ApiTold =
  | { readonly type: 'event'; readonly at: number; readonly event: ResilienceEvent }
  | { readonly type: 'store-error'; readonly at: number; readonly code: string }
  | { readonly type: 'unhandled'; readonly message: string }

/** What a process has measured of itself so far. */
interface ApiReport {
  readonly requests: readonly RequestTimes[]
  readonly loop: readonly LoopDelay[]
  /** Keys of which the store has still to be told what was admitted without it. */
  readonly keysOwed: number
  /** Units of the policy `total` that the store knows of for the hot key; `undefined`: the store did not answer. */
  readonly chargedInAll: number | undefined
}

/** When a request arrived in the process, was given to the limiter, was let pass by it or refused, and was replied to. */
export type RequestTimes = readonly [
  id: number,
  arrivedAt: number,
  askedAt: number,
  decidedAt: number,
  repliedAt: number,
]
