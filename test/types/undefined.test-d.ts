import type { AdminOptions } from '@sluice/admin'
import type { ClientOptions, WaitForOptions } from '@sluice/client'
import type {
  CostOptions,
  ForgetOptions,
  LimiterOptions,
  MemoryStoreOptions,
  PenaltyOptions,
  PolicyOptions,
  RefundOptions,
  RegionalStoreOptions,
} from '@sluice/core'
import type { RateLimitOptions as ForExpress } from '@sluice/express'
import type { RateLimitPluginOptions, RouteRateLimitOptions } from '@sluice/fastify'
import type { RateLimitOptions as ForFetch } from '@sluice/fetch'
import type { FormatOptions, MergeRetryAfterOptions, ParseOptions } from '@sluice/headers'
import type { RateLimitOptions as ForHono } from '@sluice/hono'
import type {
  AccessListOptions,
  AdaptiveOptions,
  ApiKeyOptions,
  CpuOptions,
  CredentialOptions,
  HttpPolicyOptions,
  IpOptions,
  ScheduleOptions,
  ScheduleRule,
  ShedOptions,
  SignalOptions,
} from '@sluice/http'
import type { RateLimitOptions as ForKoa } from '@sluice/koa'
import type { DenialLogOptions, MetricsOptions, TopKeysOptions } from '@sluice/metrics'
import type { HandlerRateLimit, RateLimitModuleOptions } from '@sluice/nest'
import type { AuditStreamOptions, CallOptions, OutboundOptions } from '@sluice/outbound'
import type { ChangeOptions, OpenPoliciesOptions } from '@sluice/policies'
import type { PostgresMigrationOptions, PostgresStoreOptions } from '@sluice/postgres'
import type {
  AdmissionOptions,
  BullmqBrokerOptions,
  CloseOptions,
  IdempotencyOptions,
  MemoryBrokerOptions,
  QueueOptions,
  SettledOptions,
  StatusMonitorOptions,
  WorkerOptions,
  WorkOptions,
} from '@sluice/queue'
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
  None<Strict<CostOptions | ForgetOptions | RefundOptions | MemoryStoreOptions>>,
  None<Strict<LimiterOptions | PenaltyOptions | PolicyOptions | RegionalStoreOptions>>,
  None<Strict<ForExpress | ForFetch | ForHono | ForKoa>>,
  None<Strict<RateLimitPluginOptions | RouteRateLimitOptions>>,
  None<Strict<RateLimitModuleOptions | HandlerRateLimit>>,
  None<Strict<FormatOptions | MergeRetryAfterOptions | ParseOptions>>,
  None<Strict<AccessListOptions | IpOptions | ApiKeyOptions<object> | CredentialOptions<object>>>,
  None<Strict<HttpPolicyOptions<object> | ShedOptions<object>>>,
  None<Strict<AdaptiveOptions | CpuOptions | SignalOptions | ScheduleOptions | ScheduleRule>>,
  None<Strict<DenialLogOptions<object> | MetricsOptions | TopKeysOptions>>,
  None<Strict<AuditStreamOptions | CallOptions | OutboundOptions>>,
  None<Strict<ChangeOptions | OpenPoliciesOptions>>,
  None<Strict<AdmissionOptions<object> | IdempotencyOptions | QueueOptions<object> | WorkOptions>>,
  None<Strict<MemoryBrokerOptions | BullmqBrokerOptions | CloseOptions | SettledOptions>>,
  None<Strict<StatusMonitorOptions<object> | WorkerOptions>>,
  None<Strict<PostgresMigrationOptions | PostgresStoreOptions>>,
  None<Strict<BatchOptions | RedisStoreOptions>>,
  None<Strict<DenyOptions | FakeClockOptions>>,
]
