import { type ExecutionContext, HttpException } from '@nestjs/common'
import { MetadataScanner, Reflector } from '@nestjs/core'
import { flag, invalid, type MaybePromise, type Peeked } from '@sluice/http'
import type { Guard, Passage, Scope } from '@sluice/http/adapter'
import { createGuard, passes, serve, serveByNode, throwingObjects } from '@sluice/http/adapter'
import { NestContext } from './context.ts'
import { keyName, type Limits, limitsName } from './decorators.ts'
import type { HandlerRateLimit, RateLimitHandler, RateLimitModuleOptions } from './options.ts'
import { type Platform, platformOf } from './platform.ts'

type NestGuard = Guard<ExecutionContext, RateLimitHandler>

/** A class, or a method of one. */
type Decorated = Parameters<Reflector['get']>[1]

/** A handler with its limits. */
interface LimitedPlace {
  readonly scope: Scope
  readonly hidesOnRedirect: boolean
  check(context: NestContext): MaybePromise<Passage<RateLimitHandler>>
  peek(context: NestContext): MaybePromise<Peeked>
}

/** nginx's status for a client that left before the answer, which nobody reads. */
const statusOfLeaving = 499

/** The limits of a module and of the handlers that have some of their own. */
export class HandlerLimits {
  readonly guard: NestGuard
  readonly #exchangeOf: RateLimitModuleOptions['exchangeOf']
  readonly #reflector = new Reflector()
  /** By the class and the method: a method may be inherited by several classes. */
  readonly #places = new WeakMap<Decorated, Map<Decorated, LimitedPlace>>()
  readonly #decided = new WeakSet<ExecutionContext>()

  /** @throws SluiceError when an option is unknown, missing or out of range */
  constructor(options: RateLimitModuleOptions) {
    const { global, exchangeOf }: RateLimitModuleOptions = Object(options)
    this.guard = createGuard(options, {
      where: 'RateLimitModule',
      adapterFields: ['global', 'exchangeOf'],
      isGlobal: flag(global, { option: 'global' }, true),
    })
    if (exchangeOf !== undefined && typeof exchangeOf !== 'function') {
      throw invalid({ option: 'exchangeOf' }, exchangeOf, 'a function of the context')
    }
    this.#exchangeOf = exchangeOf
  }

  /** Decides on a request once, also where the guard stands on it several times. */
  async admit(native: ExecutionContext): Promise<boolean> {
    if (this.#decided.has(native)) return true
    this.#decided.add(native)
    const place = this.#placeOf(native.getClass(), native.getHandler())
    const platform = this.#platformOf(native)
    const context = new NestContext(native, platform, place.scope)
    const goesOn = await throwingObjects(() =>
      platform ? serveByNode(platform.raw.response, context, place) : serve(context, place.check),
    )
    if (!goesOn) throw new HttpException('Client Closed Request', statusOfLeaving)
    context.goOn()
    return true
  }

  /** Answers what a request would get at its handler, and takes nothing. */
  async peek(native: ExecutionContext): Promise<Peeked> {
    const place = this.#placeOf(native.getClass(), native.getHandler())
    return place.peek(new NestContext(native, this.#platformOf(native), place.scope))
  }

  /**
   * Checks the limits of all handlers of a class.
   * @throws SluiceError when one of their options is unknown, missing or out of range
   */
  check(owner: Decorated): void {
    for (const [handler] of methodsOf(owner)) this.#placeOf(owner, handler)
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
    const [own, ownKey] = this.#written(handler)
    const [shared, sharedKey] = this.#written(owner)
    const whole = { scope: '', hidesOnRedirect: guard.hidesOnRedirect }
    const limits = own ?? shared ?? true
    const key = ownKey ?? sharedKey
    if (limits === false) return { ...whole, check: guard.pass, peek: () => passes }
    if (limits === true && key === undefined)
      return { ...whole, check: guard.check, peek: guard.peek }
    const isOwn = own !== undefined || ownKey !== undefined
    const [, name] = methodsOf(owner).find(([method]) => method === handler) ?? []
    const scope = isOwn ? `${owner.name}.${name ?? handler.name}` : owner.name
    const isKeyNearer = ownKey !== undefined && own === undefined
    const override = withKey(limits, key, isKeyNearer)
    const { hidesOnRedirect, check, peek } = guard.ofRoute(override, `@RateLimit of ${scope}`)
    return { scope, hidesOnRedirect, check, peek }
  }

  #written(target: Decorated): [Limits | undefined, HandlerRateLimit['key'] | undefined] {
    return [this.#reflector.get(limitsName, target), this.#reflector.get(keyName, target)]
  }

  #platformOf(native: ExecutionContext): Platform | undefined {
    const [request, response] = native.getArgs<[object, object]>()
    const exchange =
      native.getType() === 'http' ? { request, response } : this.#exchangeOf?.(native)
    return exchange?.request && exchange.response ? platformOf(exchange) : undefined
  }
}

/**
 * The methods of a class with their names there: a method that another decorator has replaced may
 * have no name of its own.
 */
function methodsOf({ prototype }: Decorated): readonly (readonly [Decorated, string])[] {
  const found: [Decorated, string][] = []
  for (const name of new MetadataScanner().getAllMethodNames(prototype)) {
    const method: unknown = Reflect.get(prototype, name)
    if (typeof method === 'function') found.push([method, name])
  }
  return found
}

/** Adds a key to limits. The nearer one to the handler counts, or else the one of the limits. */
function withKey(
  limits: Exclude<Limits, false>,
  key: HandlerRateLimit['key'],
  isKeyNearer: boolean,
): HandlerRateLimit | string {
  if (limits === true) return { ...(key && { key }) }
  if (key === undefined) return limits
  if (typeof limits === 'string') return { policies: [limits], key }
  return isKeyNearer ? { ...limits, key } : { key, ...limits }
}
