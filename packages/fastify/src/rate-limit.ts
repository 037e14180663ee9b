import {
  flag,
  invalid,
  isOptions,
  type MaybePromise,
  oneOf,
  orDefault,
  processWide,
} from '@sluice/http'
import {
  createGuard,
  type Guard,
  type Handler,
  handlerRequest,
  hideOnRedirect,
  type Passage,
  passWithoutFields,
  serveThen,
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
import {
  hooks,
  type RateLimitHandler,
  type RateLimitHook,
  type RateLimitPluginOptions,
  type RouteRateLimitOptions,
} from './options.ts'

type PluginGuard = Guard<FastifyRequest, RateLimitHandler>

/**
 * The last plugin whose hooks an instance has: it answers for the routes that have limits of their
 * own.
 */
interface Nearest {
  readonly guard: PluginGuard
  readonly hook: (typeof hooks)[number]
}

const nearest = processWide(
  '@sluice/fastify/nearest/1',
  () => new WeakMap<FastifyInstance, Nearest>(),
)

const register: FastifyPluginAsync<RateLimitPluginOptions> = async (fastify, options) => {
  if (!isOptions(options)) {
    throw invalid({ option: 'rateLimitPlugin' }, options, 'a plain object of options')
  }
  const { hook: wanted, global, ...limits } = options
  const hook = oneOf(orDefault(wanted, 'onRequest'), { option: 'hook' }, hooks)
  const guard: PluginGuard = createGuard(limits, {
    where: 'rateLimitPlugin',
    adapterFields: ['hook', 'global'],
    scope: fastify.prefix,
    routing: { ...routingOf(fastify), prefix: fastify.prefix },
    isGlobal: flag(global, { option: 'global' }, true),
  })

  /**
   * Behind the own hooks of those routes that have some; everywhere else with the hooks of the
   * instance.
   */
  const behind = limitHook(fastify.prefix, check)
  const first = limitHook(fastify.prefix, (context, config) =>
    standsOnRoute(behind, config) ? passWithoutFields : check(context, config),
  )
  madeHooks.set(behind, guard.hidesOnRedirect)

  function check(
    context: FastifyContext,
    { rateLimit: own }: FastifyContextConfig,
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

  function rateLimit(
    this: FastifyInstance | undefined,
    options: RouteRateLimitOptions | string = {},
  ): RateLimitHook {
    const around = (this && nearest.get(this)?.guard) ?? guard
    const own = around.derive(options, 'app.rateLimit')
    const prefix = this?.prefix ?? fastify.prefix
    const limit = limitHook(prefix, (context, config) => {
      if (standsOnRoute(limit, config)) context.scope = scopeOf(context.native)
      return own.check(context)
    })
    madeHooks.set(limit, own.setup.hideOnRedirect)
    return limit
  }

  if (!fastify.hasRequestDecorator('rateLimit')) fastify.decorateRequest('rateLimit', undefined)
  // As a text: another plugin may have declared another type under this name.
  const decorator: string = 'rateLimit'
  if (!fastify.hasDecorator(decorator)) fastify.decorate(decorator, rateLimit)

  nearest.set(fastify, { guard, hook })
  fastify.addHook('onRegister', (child) => {
    nearest.set(child, { guard, hook })
  })
  fastify.addHook('onRoute', function checkRateLimit(route) {
    if (hook !== 'onRequest' && route[hook] !== undefined) {
      Object.assign(route, { [hook]: [...listOf(route[hook]), behind] })
    }
    const made = hooks.flatMap((name) => listOf(route[name])).filter((own) => madeHooks.has(own))
    if (made.length > 0) {
      route.config = Object.assign({}, route.config, { [ownHooks]: new Set(made) })
    }
    if (made.some((own) => madeHooks.get(own)) && !guard.hidesOnRedirect) {
      route.onSend = withHook(route.onSend)
    }
    const own = route.config?.rateLimit
    if (own === undefined || own === false || nearest.get(this)?.guard !== guard) return
    const { setup } = guard.ofRoute(own, `config.rateLimit of ${String(route.method)} ${route.url}`)
    if (setup.hideOnRedirect && !guard.hidesOnRedirect) route.onSend = withHook(route.onSend)
  })
  if (hook === 'preParsing') fastify.addHook(hook, first)
  else fastify.addHook(hook, first)
  if (guard.hidesOnRedirect) fastify.addHook('onSend', takeOffOnRedirect)
}

/** Under this the config of a route says which of our hooks stand among its own. */
const ownHooks: unique symbol = Symbol.for('@sluice/fastify/own-hooks/1')

/** The hooks that may stand on a route, and whether they take fields off redirects. */
const madeHooks = processWide('@sluice/fastify/made-hooks/1', () => new WeakMap<object, boolean>())

function standsOnRoute(hook: RateLimitHook, config: RouteConfig): boolean {
  return config[ownHooks]?.has(hook) === true
}

/** The config of a route, as `onRoute` leaves it behind. */
interface RouteConfig extends FastifyContextConfig {
  readonly [ownHooks]?: ReadonlySet<object>
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

  return function limit(request, reply, ...rest) {
    // Before a body is parsed, hooks are given its stream too.
    const done = rest.length === 1 ? rest[0] : rest[1]
    serveThen(done, new FastifyContext(request, reply, scope), checkRoute)
  }
}

/** Only where it is asked for, since a hook costs every response. */
const takeOffOnRedirect: onSendHookHandler = (request, reply, _payload, goOn) => {
  hideOnRedirect(new FastifyContext(request, reply, ''), reply.statusCode)
  goOn()
}

function withHook(hooks: RouteOptions['onSend']): onSendHookHandler[] {
  const others = hooks === undefined ? [] : hooks
  return [takeOffOnRedirect, ...(Array.isArray(others) ? others : [others])]
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
