import { flag, oneOf, orDefault, processWide } from '@sluice/http'
import type { Guard, Handler, Scope, ServingGuard } from '@sluice/http/adapter'
import { continueWith, createGuard, mountedReply, routeScope, serve } from '@sluice/http/adapter'
import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from 'fastify'
import fastifyPlugin from 'fastify-plugin'
import { FastifyContext } from './context.ts'
import type {
  RateLimitHandler,
  RateLimitHook,
  RateLimitPluginOptions,
  RouteRateLimitOptions,
} from './options.ts'

const hooks = ['onRequest', 'preParsing', 'preValidation', 'preHandler'] as const

/** A registered plugin. */
interface Plugin {
  readonly guard: Guard<FastifyRequest, RateLimitHandler>
  /** The hook in which it decides. */
  readonly hook: (typeof hooks)[number]
  readonly prefix: string
}

type Limit = ServingGuard<FastifyRequest, RateLimitHandler>

/** The last plugin whose hooks an instance has: it answers for routes with limits of their own. */
const nearest = processWide('@sluice/fastify/nearest/1', () => new WeakMap<object, Plugin>())

const register: FastifyPluginAsync<RateLimitPluginOptions> = async (fastify, options) => {
  const { initialConfig, prefix } = fastify
  const guard = createGuard<FastifyRequest, RateLimitHandler>(options, {
    where: 'rateLimitPlugin',
    adapterFields: ['hook', 'global'],
    scope: prefix,
    routing: { ...initialConfig, ...initialConfig.routerOptions, prefix },
    isGlobal: flag(options.global, { option: 'global' }, true),
  })
  const hook = oneOf(orDefault(options.hook, 'onRequest'), { option: 'hook' }, hooks)
  const plugin: Plugin = { guard, hook, prefix }
  if (!fastify.hasRequestDecorator('rateLimit')) fastify.decorateRequest('rateLimit', undefined)
  const decorators = { rateLimit: hookMaker(plugin, fastify), peekRateLimit: peekOf(plugin) }
  for (const [name, made] of Object.entries<unknown>(decorators)) {
    if (!fastify.hasDecorator(name)) fastify.decorate(name, made)
  }

  nearest.set(fastify, plugin)
  fastify.addHook('onRegister', (child) => void nearest.set(child, plugin))

  // Hooks of a route come behind all hooks of its instance, wherever those were added.
  const behind = limitHook(prefix, (context) => limitOf(plugin, context))
  // For unknown URLs, and for routes that were declared before the plugin.
  const first = limitHook(prefix, (context) =>
    standsOnRoute(behind, context) ? undefined : limitOf(plugin, context),
  )
  fastify.addHook('onRoute', function prepareRoute(route) {
    if (hook !== 'onRequest') Object.assign(route, { [hook]: [route[hook] ?? [], behind].flat() })
    const own = new Set(hooks.flatMap((name): object => route[name] ?? []))
    route.config = Object.assign({}, route.config, { [ownHooks]: own })
    const { rateLimit } = route.config
    if (rateLimit === undefined || nearest.get(this) !== plugin) return
    guard.ofRoute(rateLimit, `config.rateLimit of ${String(route.method)} ${route.url}`)
  })
  if (hook === 'preParsing') fastify.addHook(hook, first)
  else fastify.addHook(hook, first)
}

/** The limit of a request by the plugin, or by its route; `undefined`: that of another plugin. */
function limitOf(plugin: Plugin, context: FastifyContext): Limit | undefined {
  const { guard, hook } = plugin
  const { rateLimit: own } = context.routeOptions.config
  if (own === undefined) return guard
  if (own === false) return guard.ofRoute(false, '')
  const answering = nearest.get(context.native.server)
  // A limiter before authentication and one behind it are two different limits.
  if (answering && answering.hook !== hook) return guard
  if (answering !== plugin) return undefined
  context.scope = scopeOf(context)
  return guard.ofRoute(own, `config.rateLimit of ${context.scope}`)
}

/** Makes `app.peekRateLimit`. */
function peekOf(plugin: Plugin): FastifyInstance['peekRateLimit'] {
  return async function peekRateLimit(request, reply) {
    const { guard, prefix } = nearest.get(request.server) ?? plugin
    return guard.peek(new FastifyContext(request, reply, prefix))
  }
}

/** Makes `app.rateLimit` for the instance of a plugin, and for its children. */
function hookMaker(plugin: Plugin, fastify: FastifyInstance) {
  return function rateLimit(
    this: FastifyInstance | undefined,
    options: RouteRateLimitOptions | string = {},
  ): RateLimitHook {
    const instance = this ?? fastify
    const { guard } = nearest.get(instance) ?? plugin
    const own = guard.derive(options, 'app.rateLimit')
    const limit = limitHook(instance.prefix, (context) => {
      if (standsOnRoute(limit, context)) context.scope = scopeOf(context)
      return own
    })
    return limit
  }
}

/** Under this the config of a route, as `onRoute` leaves it behind, has the hooks of the route. */
const ownHooks = Symbol.for('@sluice/fastify/own-hooks/1')

function standsOnRoute(hook: RateLimitHook, { routeOptions }: FastifyContext): boolean {
  const own: unknown = Reflect.get(routeOptions.config, ownHooks)
  return own instanceof Set && own.has(hook)
}

/**
 * Makes a hook of any kind.
 * @param scope where private policies count, unless `limitFor` says otherwise
 */
function limitHook(
  scope: string,
  limitFor: (context: FastifyContext) => Limit | undefined,
): RateLimitHook {
  return (request, reply, ...rest) => {
    // Before a body is parsed, hooks are given its stream too.
    const done = rest.length === 1 ? rest[0] : rest[1]
    continueWith(done, () => {
      const context = new FastifyContext(request, reply, scope)
      const limit = limitFor(context)
      return limit ? serve(context, limit) : true
    })
  }
}

/** The route of a request as the place of its limits: one place, also for several methods. */
function scopeOf({ method, routeOptions }: FastifyContext): Scope {
  const { method: methods, url = '' } = routeOptions
  return routeScope(Array.isArray(methods) ? undefined : method, url)
}

/**
 * Limits the requests of the instance that it is registered on.
 * @example
 * await app.register(rateLimitPlugin, { limit: 100, window: '1m' })
 * app.get('/search', { config: { rateLimit: { limit: 5, window: '1m' } } }, search)
 * app.get('/health', { config: { rateLimit: false } }, health)
 */
export const rateLimitPlugin: FastifyPluginAsync<RateLimitPluginOptions> = fastifyPlugin(register, {
  fastify: '5.x',
  name: '@sluice/fastify',
})

/**
 * A plugin that serves a handler under a path.
 * @example
 * app.register(mount(handler), { prefix: '/limits' })
 */
export function mount(handler: Handler<FastifyRequest>): FastifyPluginAsync {
  return async function sluiceHandler(fastify) {
    // A handler reads the body itself, within its own bounds.
    fastify.removeAllContentTypeParsers()
    fastify.addContentTypeParser('*', (_request, _payload, done) => done(null))
    for (const url of ['/', '/*']) {
      fastify.all(url, async (native, reply) => {
        const context = new FastifyContext(native, reply, '')
        const answer = await mountedReply(handler, context, fastify.prefix)
        if (!answer) return reply.callNotFound()
        const { status, headers = {}, body } = answer
        // To a text Fastify would add a charset, which problem+json does not have.
        const bytes = typeof body === 'string' ? Buffer.from(body) : body
        return reply.code(status).headers(headers).send(bytes)
      })
    }
  }
}
