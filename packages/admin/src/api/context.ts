import type { MaybePromise, Store, StoreHealth } from '@sluice/core'
import type { Metrics } from '@sluice/metrics'
import type { Difference, Policies, VersionRecord } from '@sluice/policies'
import type { Queue } from '@sluice/queue'
import type { Granted } from '../access/authorize.ts'
import type { AuditTrail } from '../stores/audit-trail.ts'
import type { SharedReads } from '../stores/shared-reads.ts'
import type { TrafficHistory } from './traffic.ts'

/** Everything that API operations work with. */
export interface Admin {
  readonly instance: string
  readonly policies: Policies | undefined
  readonly metrics: Metrics | undefined
  readonly queues: readonly Pick<Queue, 'broker'>[]
  readonly audit: AuditTrail
  readonly reads: SharedReads
  readonly changesBetween: (before: VersionRecord, after: VersionRecord) => readonly Difference[]
  /** The counters of the last minutes; `undefined` without metrics. */
  readonly history: TrafficHistory | undefined
  /** The store of the counts; `undefined` while no limiter uses the policies. */
  readonly store: () => Store | undefined
  readonly storeHealth: () => StoreHealth | undefined
}

/** A validated request. */
export interface Call<Query = unknown, Body = unknown> {
  readonly admin: Admin
  readonly who: Granted
  readonly query: Query
  readonly body: Body
  /** The revision of the changes in `If-Match`. */
  readonly number: number | undefined
  readonly path: Readonly<Record<string, string>>
}

export type Answering<Query = unknown, Body = unknown> = (
  call: Call<Query, Body>,
) => MaybePromise<object>
