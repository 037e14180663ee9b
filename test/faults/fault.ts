import type { RedisCluster } from '../support/redis-cluster.ts'
import type { RedisSentinel } from '../support/redis-sentinel.ts'
import type { RedisServer } from '../support/redis-server.ts'
import type { TcpProxy } from './tcp-proxy.ts'

export type SteppedClock = 'ours' | 'store'

/** A real server, and the way to it, for faults to spoil. */
export interface Rig {
  readonly server: RedisServer
  /** The way of all processes, or, where the fault splits the fleet, of every second one. */
  readonly proxy: TcpProxy
  /** Starts the server again on its port, when it was killed or stopped; with its data where the fault keeps it. */
  restart(): Promise<void>
  /** Steps a clock in all processes; back with the negative. */
  stepClock(clock: SteppedClock, byMs: number): Promise<void>
}

export type EndFault = () => unknown

type MaybePromise<T> = T | Promise<T>

/** One way in which Redis, the network or a clock fails. */
export type Fault = FaultTraits &
  (
    | { readonly topology?: undefined; inflict(rig: Rig): MaybePromise<EndFault> }
    | { readonly topology: 'sentinel'; inflict(redis: RedisSentinel): MaybePromise<EndFault> }
    | { readonly topology: 'cluster'; inflict(redis: RedisCluster): MaybePromise<EndFault> }
  )

interface FaultTraits {
  readonly name: string
  /** What the APIs have of the store meanwhile: nothing at all, some answers, or all of them. */
  readonly store: 'gone' | 'flaky' | 'works'
  /** How long it lasts in the full run. @default 3200 */
  readonly lastsMs?: number
  /** The APIs are started when it has begun already. @default false */
  readonly beforeBoot?: boolean
  /** The server loses what it knows, or some of it; `acknowledged`: of what it takes until the fault has ended, too. @default false */
  readonly losesData?: boolean | 'acknowledged'
  /** The server writes its data to disk, and has it when it starts again. @default false */
  readonly isPersistent?: boolean
  /** The stores of the APIs count by a clock of the tests, which `stepClock` steps. @default false */
  readonly ownClock?: boolean
  /** Only every second process goes through the proxy, the others to the server itself; for fleets. @default false */
  readonly splitsFleet?: boolean
  /** The most that is admitted in a window, in limits, where it is not what follows from `store`. */
  readonly admits?: number
  /** Types of events that it has to set off, beyond what follows from `store`. */
  readonly events?: readonly string[]
}

export type ServerFault = Extract<Fault, { topology?: undefined }>
