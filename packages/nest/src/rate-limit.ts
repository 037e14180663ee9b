import {
  type CanActivate,
  ConfigurableModuleBuilder,
  type ConfigurableModuleHost,
  type ExecutionContext,
  Global,
  HttpException,
  Inject,
  Injectable,
  Module,
} from '@nestjs/common'
import { DiscoveryModule, DiscoveryService } from '@nestjs/core'
import { type Limiter, type Peeked, serve, throwingObjects } from '@sluice/http'
import { HandlerLimits } from './handler-limits.ts'
import type { RateLimitModuleOptions } from './options.ts'

/**
 * Limits the handlers that use it, or all handlers.
 * @example
 * providers: [{ provide: APP_GUARD, useClass: RateLimitGuard }]
 */
export class RateLimitGuard implements CanActivate {
  readonly #limits: HandlerLimits

  constructor(limits: HandlerLimits) {
    this.#limits = limits
  }

  /** The module's limiter: to peek at a key, reset it, or refund a decision. */
  get limiter(): Limiter {
    return this.#limits.guard.limiter
  }

  /** Returns the decision that a request would get by its key, limit and cost. Takes nothing. */
  async peek(context: ExecutionContext): Promise<Peeked> {
    const { guard, asked } = this.#limits.ask(context)
    return guard.peek(asked)
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const { decided } = this.#limits
    if (decided.has(context)) return true
    decided.add(context)
    const { guard, asked } = this.#limits.ask(context)
    const goesOn = await throwingObjects(() => serve(asked, guard))
    // nginx's status for a client that disconnected early; nobody reads it.
    if (!goesOn) throw new HttpException('Client Closed Request', 499)
    asked.hold?.finish(200)
    return true
  }
}

type Host = ConfigurableModuleHost<RateLimitModuleOptions, 'forRoot', 'createRateLimitOptions'>

const host: Host = new ConfigurableModuleBuilder<RateLimitModuleOptions>({
  moduleName: 'RateLimit',
})
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createRateLimitOptions')
  .build()

/**
 * Holds the limits of an application, for guards in all of its modules.
 * @example
 * imports: [RateLimitModule.forRoot({ limit: 100, window: '1m' })]
 */
export class RateLimitModule extends host.ConfigurableModuleClass {}

// Applied as calls: not every tool keeps decorators or parameter types.
Inject(host.MODULE_OPTIONS_TOKEN)(HandlerLimits, undefined, 0)
Inject(DiscoveryService)(HandlerLimits, undefined, 1)
Inject(HandlerLimits)(RateLimitGuard, undefined, 0)
Injectable()(RateLimitGuard)
Global()(RateLimitModule)
Module({
  imports: [DiscoveryModule],
  providers: [RateLimitGuard, HandlerLimits],
  exports: [RateLimitGuard, HandlerLimits],
})(RateLimitModule)
