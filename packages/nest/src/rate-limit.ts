import {
  type CanActivate,
  ConfigurableModuleBuilder,
  type ConfigurableModuleHost,
  type ExecutionContext,
  Global,
  Inject,
  Injectable,
  Module,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common'
import { DiscoveryModule, DiscoveryService } from '@nestjs/core'
import type { Limiter, Peeked } from '@sluice/http/exports'
import { HandlerLimits } from './handler-limits.ts'
import type { RateLimitModuleOptions } from './options.ts'

/**
 * Limits the handlers on which it stands, or all of them.
 * @example
 * providers: [{ provide: APP_GUARD, useClass: RateLimitGuard }]
 */
export class RateLimitGuard implements CanActivate {
  readonly #limits: HandlerLimits

  constructor(limits: HandlerLimits) {
    this.#limits = limits
  }

  /** The limiter of the module: to peek at a key, to reset it, or to refund a decision. */
  get limiter(): Limiter {
    return this.#limits.guard.limiter
  }

  /** Answers what a request would get, by its own key, limit and cost. Takes nothing. */
  peek(context: ExecutionContext): Promise<Peeked> {
    return this.#limits.peek(context)
  }

  canActivate(context: ExecutionContext): Promise<boolean> {
    return this.#limits.admit(context)
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
export class RateLimitModule
  extends host.ConfigurableModuleClass
  implements OnModuleInit, OnApplicationShutdown
{
  readonly #limits: HandlerLimits
  readonly #discovery: DiscoveryService

  constructor(limits: HandlerLimits, discovery: DiscoveryService) {
    super()
    this.#limits = limits
    this.#discovery = discovery
  }

  /**
   * Checks the options of all decorators before the first request.
   * @throws SluiceError when an option is unknown, missing or out of range
   */
  onModuleInit(): void {
    const found = [...this.#discovery.getControllers(), ...this.#discovery.getProviders()]
    for (const { metatype } of found) if (metatype) this.#limits.check(metatype)
  }

  /** Settles what is under way. Clients of stores stay yours. */
  async onApplicationShutdown(): Promise<void> {
    await this.#limits.guard.limiter.close()
  }
}

// As calls: not every tool leaves decorators in, or the types of the parameters.
Inject(host.MODULE_OPTIONS_TOKEN)(HandlerLimits, undefined, 0)
Inject(HandlerLimits)(RateLimitGuard, undefined, 0)
Injectable()(RateLimitGuard)
Inject(HandlerLimits)(RateLimitModule, undefined, 0)
Inject(DiscoveryService)(RateLimitModule, undefined, 1)
Global()(RateLimitModule)
Module({
  imports: [DiscoveryModule],
  providers: [RateLimitGuard, HandlerLimits],
  exports: [RateLimitGuard, HandlerLimits],
})(RateLimitModule)
