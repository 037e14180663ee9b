import { flag, type MaybePromise, oneOf, orDefault, processWide } from '@sluice/http'
import type { Guard, Handler, Passage } from '@sluice/http/adapter'
import {
  continueWith,
  createGuard,
  handlerRequest,
  hideOnRedirect,
  passWithoutFields,
  serve,
} from '@sluice/http/adapter'
import type {
  FastifyContextConfig,
  FastifyInstance,
  FastifyPluginAsync,
  FastifyRequest,
  onSendHookHandler,
  RouteOptions,
} from 'fastify'
import fastifyPlugin from 'fastify-plugin'
import { FastifyContext, routingOf, scopeOf } from './context.ts'
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

/** The last plugin whose hooks an instance has: it answers for routes with limits of their own. */
const nearest = processWide(
  '@sluice/fastify/nearest/1',
  () => new WeakMap<FastifyInstance, Plugin>(),
)

const register: FastifyPluginAsync<RateLimitPluginOptions> = async (fastify, options) => {
  const { prefix } = fastify
  const guard = createGuard<FastifyRequest, RateLimitHandler>(options, {
    where: 'rateLimitPlugin',
    adapterFields: ['hook', 'global'],
    scope: prefix,
    routing: { ...routingOf(fastify), prefix },
    isGlobal: flag(options.global, { option: 'global' }, true),
  })
  const hook = oneOf(orDefault(options.hook, 'onRequest'), { option: 'hook' }, hooks)
  const plugin: Plugin = { guard, hook, prefix }
  if (!fastify.hasRequestDecorator('rateLimit')) fastify.decorateRequest('rateLimit', undefined)
  // As a text: another plugin may have declared another type under this name.
  const decorator: string = 'rateLimit'
  if (!fastify.hasDecorator(decorator)) fastify.decorate(decorator, hookMaker(plugin, fastify))
  if (!fastify.hasDecorator('peekRateLimit')) fastify.decorate('peekRateLimit', peekOf(plugin))

  nearest.set(fastify, plugin)
  fastify.addHook('onRegister', (child) => void nearest.set(child, plugin))

  // Hooks of a route come behind all hooks of its instance, wherever those were added.
  const behind = limitHook(prefix, (context, config) => check(plugin, context, config))
  // For unknown URLs, and for routes that were declared before the plugin.
  const first = limitHook(prefix, (context, config) =>
    standsOnRoute(behind, config) ? passWithoutFields : check(plugin, context, config),
  )
  fastify.addHook('onRoute', function prepareRoute(route) {
    if (hook !== 'onRequest') Object.assign(route, { [hook]: [...listOf(route[hook]), behind] })
    markHooks(route)
    const own = route.config?.rateLimit
    if (own === undefined || own === false || nearest.get(this)?.guard !== guard) return
    const where = `config.rateLimit of ${String(route.method)} ${route.url}`
    if (guard.ofRoute(own, where).hidesOnRedirect && !guard.hidesOnRedirect) {
      Object.assign(route, { onSend: [takeOffOnRedirect, ...listOf(route.onSend)] })
    }
  })
  if (hook === 'preParsing') fastify.addHook(hook, first)
  else fastify.addHook(hook, first)
  if (guard.hidesOnRedirect) fastify.addHook('onSend', takeOffOnRedirect)
}

/** Decides on a request by the plugin, or by the limits of its route. */
function check(
  { guard, hook }: Plugin,
  context: FastifyContext,
  { rateLimit: own }: RouteConfig,
): MaybePromise<Passage<RateLimitHandler>> {
  if (own === undefined) return guard.check(context)
  if (own === false) return guard.pass(context)
  const answering = nearest.get(context.native.server)
  // A limiter before authentication and one behind it are two different limits.
  if (answering && answering.hook !== hook) return guard.check(context)
  if (answering?.guard !== guard) return passWithoutFields
  context.scope = scopeOf(context.native)
  return guard.ofRoute(own, `config.rateLimit of ${context.scope}`).check(context)
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
    const limit = limitHook(instance.prefix, (context, config) => {
      if (standsOnRoute(limit, config)) context.scope = scopeOf(context.native)
      return own.check(context)
    })
    if (own.hidesOnRedirect && !guard.hidesOnRedirect) {
      instance.addHook('onSend', takeOffOnRedirect)
    }
    return limit
  }
}

/** Under this the config of a route says which of our hooks stand among its own. */
const ownHooks: unique symbol = Symbol.for('@sluice/fastify/own-hooks/1')

/** The config of a route, as `onRoute` leaves it behind. */
interface RouteConfig extends FastifyContextConfig {
  readonly [ownHooks]?: ReadonlySet<object>
}

/** The hooks that may stand on a route. */
const madeHooks = processWide('@sluice/fastify/made-hooks/2', () => new WeakSet<object>())

function markHooks(route: RouteOptions): void {
  const own = hooks.flatMap((name) => listOf(route[name])).filter((hook) => madeHooks.has(hook))
  if (own.length === 0) return
  route.config = Object.assign({}, route.config, { [ownHooks]: new Set(own) })
}

function standsOnRoute(hook: RateLimitHook, config: RouteConfig): boolean {
  return config[ownHooks]?.has(hook) === true
}

function listOf(own: object | undefined): readonly object[] {
  if (own === undefined) return []
  return Array.isArray(own) ? own : [own]
}

/**
 * Makes a hook of any kind.
 * @param scope where private policies count, unless `check` says otherwise
 */
function limitHook(
  scope: string,
  check: (context: FastifyContext, config: RouteConfig) => MaybePromise<Passage<RateLimitHandler>>,
): RateLimitHook {
  const checkRoute = (context: FastifyContext) => check(context, context.routeOptions.config)
  const limit: RateLimitHook = (request, reply, ...rest) => {
    // Before a body is parsed, hooks are given its stream too.
    const done = rest.length === 1 ? rest[0] : rest[1]
    const context = new FastifyContext(request, reply, scope)
    continueWith(done, () => serve(context, checkRoute))
  }
  madeHooks.add(limit)
  return limit
}

/** Only where it is asked for, since a hook costs every response. */
const takeOffOnRedirect: onSendHookHandler = (request, reply, _payload, goOn) => {
  hideOnRedirect(new FastifyContext(request, reply, ''), reply.statusCode)
  goOn()
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
        const answer = await handler(handlerRequest(context, fastify.prefix))
        if (!answer) return reply.callNotFound()
        return (
          reply
            .code(answer.status)
            .headers(answer.headers ?? {})
            // To a text Fastify would add a charset, which problem+json does not have.
            .send(typeof answer.body === 'string' ? Buffer.from(answer.body) : answer.body)
        )
      })
    }
  }
}
