import type { ExecutionContext, OnApplicationShutdown, OnModuleInit } from '@nestjs/common'
import { type DiscoveryService, MetadataScanner, Reflector } from '@nestjs/core'
import { flag, functionOption } from '@sluice/http'
import type { Guard, Scope } from '@sluice/http/adapter'
import { createGuard } from '@sluice/http/adapter'
import { NestContext } from './context.ts'
import { keyName, type Limits, limitsName } from './decorators.ts'
import type { HandlerRateLimit, RateLimitHandler, RateLimitModuleOptions } from './options.ts'
import { platformOf } from './platform.ts'

type NestGuard = Guard<ExecutionContext, RateLimitHandler>

/** A class or a method. */
type Decorated = Parameters<Reflector['get']>[1]

/** A handler with its limits. */
interface LimitedPlace {
  readonly scope: Scope
  readonly guard: ReturnType<NestGuard['ofRoute']>
}

/** The limits of a module and of handlers with their own limits. */
export class HandlerLimits implements OnModuleInit, OnApplicationShutdown {
  readonly guard: NestGuard
  /** Calls that the module's guard has already decided: it may be applied several times. */
  readonly decided: WeakSet<ExecutionContext> = new WeakSet()
  readonly #discovery: DiscoveryService
  readonly #exchangeOf: RateLimitModuleOptions['exchangeOf']
  /** By class and method: several classes may inherit a method. */
  readonly #places = new WeakMap<Decorated, Map<Decorated, LimitedPlace>>()

  /** @throws SluiceError if an option is unknown, missing or out of range */
  constructor(options: RateLimitModuleOptions, discovery: DiscoveryService) {
    const { global, exchangeOf }: RateLimitModuleOptions = Object(options)
    this.guard = createGuard(options, {
      where: 'RateLimitModule',
      adapterFields: ['global', 'exchangeOf'],
      isGlobal: flag(global, { option: 'global' }, true),
    })
    this.#exchangeOf = functionOption('a function of the context')(exchangeOf, 'exchangeOf')
    this.#discovery = discovery
  }

  /**
   * Checks the options of all decorators before the first request.
   * @throws SluiceError if an option is unknown, missing or out of range
   */
  onModuleInit(): void {
    const found = [...this.#discovery.getControllers(), ...this.#discovery.getProviders()]
    for (const { metatype } of found) {
      if (!metatype) continue
      for (const handler of methodsOf(metatype).keys()) this.#placeOf(metatype, handler)
    }
  }

  /** Settles pending work. You own the clients of stores. */
  async onApplicationShutdown(): Promise<void> {
    await this.guard.limiter.close()
  }

  /** Returns the guard of a call, and the call as that guard sees it. */
  ask(native: ExecutionContext): Pick<LimitedPlace, 'guard'> & { asked: NestContext } {
    const { guard, scope } = this.#placeOf(native.getClass(), native.getHandler())
    const [request, response] = native.getArgs<[object, object]>()
    const exchange =
      native.getType() === 'http' ? { request, response } : this.#exchangeOf?.(native)
    const http = exchange?.request && exchange.response ? platformOf(exchange) : undefined
    return { guard, asked: new NestContext(native, http, scope) }
  }

  #placeOf(owner: Decorated, handler: Decorated): LimitedPlace {
    const places = this.#places.get(owner) ?? new Map<Decorated, LimitedPlace>()
    this.#places.set(owner, places)
    const place = places.get(handler) ?? this.#read(owner, handler)
    places.set(handler, place)
    return place
  }

  #read(owner: Decorated, handler: Decorated): LimitedPlace {
    const { guard } = this
    const [own, ownKey] = written(handler)
    const [shared, sharedKey] = written(owner)
    const limits = own ?? shared ?? true
    const key = ownKey ?? sharedKey
    if (limits === false) return { scope: '', guard: guard.ofRoute(false, '') }
    if (limits === true && key === undefined) return { scope: '', guard }
    const isOwn = own !== undefined || ownKey !== undefined
    const method = methodsOf(owner).get(handler) ?? handler.name
    const scope = isOwn ? `${owner.name}.${method}` : owner.name
    const override = withKey(limits, key, ownKey !== undefined && own === undefined)
    return { scope, guard: guard.ofRoute(override, `@RateLimit of ${scope}`) }
  }
}

const reflector = new Reflector()

function written(target: Decorated): [Limits | undefined, HandlerRateLimit['key'] | undefined] {
  return [reflector.get(limitsName, target), reflector.get(keyName, target)]
}

/**
 * Returns the methods of a class by their names there: a method replaced by another decorator may
 * have no name.
 */
function methodsOf({ prototype }: Decorated): ReadonlyMap<Decorated, string> {
  const names = new MetadataScanner().getAllMethodNames(prototype)
  return new Map(names.map((name) => [Reflect.get(prototype, name), name]))
}

/** Adds a key to limits. The key closest to the handler wins; otherwise the key in the limits. */
function withKey(
  limits: Exclude<Limits, false>,
  key: HandlerRateLimit['key'],
  isKeyNearer: boolean,
): HandlerRateLimit | string {
  if (limits === true) return { key }
  if (key === undefined) return limits
  if (typeof limits === 'string') return { policies: [limits], key }
  return isKeyNearer ? { ...limits, key } : { key, ...limits }
}
