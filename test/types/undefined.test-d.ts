import type { AdminOptions } from '@sluice/admin'
import type { ClientOptions, WaitForOptions } from '@sluice/client'
import type * as core from '@sluice/core'
import type { RateLimitOptions as ForExpress } from '@sluice/express'
import type { RateLimitPluginOptions, RouteRateLimitOptions } from '@sluice/fastify'
import type { RateLimitOptions as ForFetch } from '@sluice/fetch'
import type { FormatOptions, ParseOptions } from '@sluice/headers'
import type { RateLimitOptions as ForHono } from '@sluice/hono'
import type * as http from '@sluice/http'
import type { RateLimitOptions as ForKoa } from '@sluice/koa'
import type { DenialLogOptions, MetricsOptions, TopKeysOptions } from '@sluice/metrics'
import type { HandlerRateLimit, RateLimitModuleOptions } from '@sluice/nest'
import type { AuditStreamOptions, CallOptions, OutboundOptions } from '@sluice/outbound'
import type { ChangeOptions, OpenPoliciesOptions } from '@sluice/policies'
import type { PostgresMigrationOptions, PostgresStoreOptions } from '@sluice/postgres'
import type * as queue from '@sluice/queue'
import type { BatchOptions, RedisStoreOptions } from '@sluice/redis'
import type { DenyOptions, FakeClockOptions } from '@sluice/testing'

// Compiled by `tsc -p test` with `exactOptionalPropertyTypes`, and never run.

/** The optional properties of a type that do not take `undefined`. */
type Strict<T> = T extends unknown
  ? {
      [Field in keyof T]-?: object extends Pick<T, Field>
        ? { [field in Field]: undefined } extends Pick<T, Field>
          ? never
          : Field
        : never
    }[keyof T]
  : never

type None<Fields extends never> = Fields

export type Checked = [
  None<Strict<AdminOptions<object>>>,
  None<Strict<ClientOptions | WaitForOptions>>,
  None<Strict<core.CostOptions | core.ForgetOptions | core.RefundOptions>>,
  None<Strict<core.LimiterOptions | core.PenaltyOptions | core.PolicyOptions>>,
  None<Strict<core.MemoryStoreOptions | core.RegionalStoreOptions>>,
  None<Strict<ForExpress | ForFetch | ForHono | ForKoa>>,
  None<Strict<RateLimitPluginOptions | RouteRateLimitOptions>>,
  None<Strict<RateLimitModuleOptions | HandlerRateLimit>>,
  None<Strict<FormatOptions | ParseOptions>>,
  None<Strict<http.AccessListOptions | http.IpOptions | http.ApiKeyOptions<object>>>,
  None<Strict<http.CredentialOptions<object> | http.HttpPolicyOptions<object>>>,
  None<Strict<http.ShedOptions<object> | http.AdaptiveOptions | http.CpuOptions>>,
  None<Strict<http.SignalOptions | http.ScheduleOptions | http.ScheduleRule>>,
  None<Strict<DenialLogOptions<object> | MetricsOptions | TopKeysOptions>>,
  None<Strict<AuditStreamOptions | CallOptions | OutboundOptions>>,
  None<Strict<ChangeOptions | OpenPoliciesOptions>>,
  None<Strict<queue.AdmissionOptions<object> | queue.IdempotencyOptions>>,
  None<Strict<queue.QueueOptions<object> | queue.WorkOptions | queue.CloseOptions>>,
  None<Strict<queue.MemoryBrokerOptions | queue.BullmqBrokerOptions | queue.SettledOptions>>,
  None<Strict<queue.StatusMonitorOptions<object> | queue.WorkerOptions>>,
  None<Strict<PostgresMigrationOptions | PostgresStoreOptions>>,
  None<Strict<BatchOptions | RedisStoreOptions>>,
  None<Strict<DenyOptions | FakeClockOptions>>,
]
