import { flag, oneOf, orDefault, processWide } from '@sluice/http'
import type { Guard, Handler, Scope, ServingGuard } from '@sluice/http/adapter'
import { continueWith, createGuard, mountedReply, routeScope, serve } from '@sluice/http/adapter'
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
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
  /** The hook in which requests are checked. */
  readonly hook: (typeof hooks)[number]
  readonly prefix: string
}

type Limit = ServingGuard<FastifyRequest, RateLimitHandler>

/** The last plugin registered for an instance. It applies the limits of single routes. */
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
  for (const [name, decorator] of Object.entries<unknown>(decoratorsOf(fastify, plugin))) {
    if (!fastify.hasDecorator(name)) fastify.decorate(name, decorator)
  }

  nearest.set(fastify, plugin)
  fastify.addHook('onRegister', (child) => void nearest.set(child, plugin))

  // A route's hooks run after all hooks of its instance, even those added later.
  const last = limitHook(prefix, (context) => limitOf(plugin, context))
  // For unknown URLs, and for routes declared before the plugin.
  const first = limitHook(prefix, (context) =>
    isOnRoute(last, context) ? undefined : limitOf(plugin, context),
  )
  fastify.addHook('onRoute', function prepareRoute(route) {
    if (hook !== 'onRequest') Object.assign(route, { [hook]: [route[hook] ?? [], last].flat() })
    const added = new Set(hooks.flatMap((name): object => route[name] ?? []))
    route.config = Object.assign({}, route.config, { [routeHooks]: added })
    const { rateLimit } = route.config
    if (rateLimit === undefined || nearest.get(this) !== plugin) return
    guard.ofRoute(rateLimit, `config.rateLimit of ${String(route.method)} ${route.url}`)
  })
  if (hook === 'preParsing') fastify.addHook(hook, first)
  else fastify.addHook(hook, first)
}

/** Returns the limit of a request in a plugin; `undefined` if another plugin applies it. */
function limitOf(plugin: Plugin, context: FastifyContext): Limit | undefined {
  const { guard, hook } = plugin
  const { rateLimit: own } = context.routeOptions.config
  if (own === undefined) return guard
  if (own === false) return guard.ofRoute(false, '')
  const closest = nearest.get(context.native.server)
  // Limits before and after authentication are independent.
  if (closest && closest.hook !== hook) return guard
  if (closest !== plugin) return undefined
  context.scope = scopeOf(context)
  return guard.ofRoute(own, `config.rateLimit of ${context.scope}`)
}

/** Creates the decorators of an instance, which its children inherit. */
function decoratorsOf(fastify: FastifyInstance, plugin: Plugin) {
  return {
    rateLimit(this: FastifyInstance | undefined, options: RouteRateLimitOptions | string = {}) {
      const instance = this ?? fastify
      const { guard } = nearest.get(instance) ?? plugin
      const own = guard.derive(options, 'app.rateLimit')
      const hook = limitHook(instance.prefix, (context) => {
        if (isOnRoute(hook, context)) context.scope = scopeOf(context)
        return own
      })
      return hook
    },
    async peekRateLimit(request: FastifyRequest, reply: FastifyReply) {
      const { guard, prefix } = nearest.get(request.server) ?? plugin
      return guard.peek(new FastifyContext(request, reply, prefix))
    },
  }
}

/** The key in a route's config under which `onRoute` keeps the hooks of the route. */
const routeHooks = Symbol.for('@sluice/fastify/own-hooks/1')

function isOnRoute(hook: RateLimitHook, { routeOptions }: FastifyContext): boolean {
  const added: unknown = Reflect.get(routeOptions.config, routeHooks)
  return added instanceof Set && added.has(hook)
}

/** Creates a hook. Unnamed policies count in the scope, unless `limitFor` sets another one. */
function limitHook(
  scope: string,
  limitFor: (context: FastifyContext) => Limit | undefined,
): RateLimitHook {
  return (request, reply, ...rest) => {
    // `preParsing` hooks receive the body stream as well.
    const done = rest.length === 1 ? rest[0] : rest[1]
    continueWith(done, () => {
      const context = new FastifyContext(request, reply, scope)
      const limit = limitFor(context)
      return limit ? serve(context, limit) : true
    })
  }
}

/** Returns a request's route as a scope. A route with several methods is one scope. */
function scopeOf({ method, routeOptions }: FastifyContext): Scope {
  const { method: methods, url = '' } = routeOptions
  return routeScope(Array.isArray(methods) ? undefined : method, url)
}

/**
 * Limits the requests of the instance where it is registered.
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
    // A handler reads the body itself, up to its own maximum.
    fastify.removeAllContentTypeParsers()
    fastify.addContentTypeParser('*', (_request, _payload, done) => done(null))
    for (const url of ['/', '/*']) {
      fastify.all(url, async (native, reply) => {
        const context = new FastifyContext(native, reply, '')
        const answer = await mountedReply(handler, context, fastify.prefix)
        if (!answer) return reply.callNotFound()
        const { status, headers = {}, body } = answer
        // Fastify would add a charset to a string: problem+json has none.
        const bytes = typeof body === 'string' ? Buffer.from(body) : body
        return reply.code(status).headers(headers).send(bytes)
      })
    }
  }
}
