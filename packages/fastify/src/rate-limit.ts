import {
  type Answer,
  andThen,
  continueWith,
  createGuard,
  type Exchange,
  fieldsOnHead,
  flag,
  type Guard,
  given,
  invalid,
  isOptions,
  isPromise,
  type MaybePromise,
  oneOf,
  type Passage,
  processWide,
  RateLimitError,
  type Reject,
  setFields,
  settleAfter,
  untouched,
} from '@sluice/http'
import type {
  FastifyInstance,
  FastifyPluginAsync,
  FastifyReply,
  FastifyRequest,
  onSendHookHandler,
  RouteOptions,
} from 'fastify'
import fastifyPlugin from 'fastify-plugin'
import {
  hooks,
  type RateLimitHandler,
  type RateLimitHook,
  type RateLimitPluginOptions,
  type RouteRateLimitOptions,
} from './options.ts'
import { ReplyView, RequestView, routingOf, scopeOf } from './request-view.ts'

type PluginGuard = Guard<FastifyRequest, RateLimitHandler>

/** The last plugin whose hooks an instance has: it answers for the routes that have limits of their own. */
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
  const hook = oneOf(given(wanted, 'onRequest'), { option: 'hook' }, hooks)
  const guard: PluginGuard = createGuard(limits, {
    where: 'rateLimitPlugin',
    adapterFields: ['hook', 'global'],
    scope: fastify.prefix,
    routing: { ...routingOf(fastify), prefix: fastify.prefix },
    isGlobal: flag(global, { option: 'global' }, true),
  })

  /** Behind the own hooks of those routes that have some; everywhere else with the hooks of the instance. */
  const behind = limitHook(fastify.prefix, check)
  const first = limitHook(fastify.prefix, (exchange) =>
    standsOnRoute(behind, exchange.native) ? untouched : check(exchange),
  )
  madeHooks.set(behind, guard.hidesOnRedirect)

  function check(exchange: Exchange<FastifyRequest>): MaybePromise<Passage<RateLimitHandler>> {
    const { rateLimit: own } = exchange.native.routeOptions.config
    if (own === undefined) return guard.check(exchange)
    if (own === false) return untouched
    const answering = nearest.get(exchange.native.server)
    // What stands in front of authentication, or behind it, is no other limit for the same.
    if (answering && answering.hook !== hook) return guard.check(exchange)
    if (answering?.guard !== guard) return untouched
    const scope = scopeOf(exchange.native)
    return guard.ofRoute(own, `config.rateLimit of ${scope}`).check({ ...exchange, scope })
  }

  function rateLimit(
    this: FastifyInstance | undefined,
    options: RouteRateLimitOptions | string = {},
  ): RateLimitHook {
    const around = (this && nearest.get(this)?.guard) ?? guard
    const own = around.derive(options, 'app.rateLimit')
    const prefix = this?.prefix ?? fastify.prefix
    const limit = limitHook(prefix, (exchange) => {
      const scope = standsOnRoute(limit, exchange.native) ? scopeOf(exchange.native) : prefix
      return own.check({ ...exchange, scope })
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

function standsOnRoute(hook: RateLimitHook, { routeOptions }: FastifyRequest): boolean {
  const own: unknown = Reflect.get(routeOptions.config, ownHooks)
  return own instanceof Set && own.has(hook)
}

function listOf(own: object | undefined): readonly object[] {
  if (own === undefined) return []
  return Array.isArray(own) ? own : [own]
}

/** @param scope where private policies count, unless `check` says otherwise */
function limitHook(
  scope: string,
  check: (exchange: Exchange<FastifyRequest>) => MaybePromise<Passage<RateLimitHandler>>,
): RateLimitHook {
  /** Whether the request goes on; if not, it was replied to. */
  function admit(request: FastifyRequest, reply: FastifyReply): MaybePromise<boolean> {
    const response = new ReplyView(reply)
    const exchange: Exchange<FastifyRequest> = {
      native: request,
      request: new RequestView(request),
      response,
      scope,
      whenOver: (hold) => settleAfter(reply.raw, request.raw.socket, hold),
    }
    return andThen(check(exchange), ({ decision, verdict, hold }) => {
      if (hold) exchange.whenOver(hold)
      if (decision) request.rateLimit = decision
      setFields(response, verdict.fields)
      if (verdict.action === 'pass') return true
      if (verdict.action === 'delay') return verdict.turn
      if (response.headersSent) return false
      if (verdict.action === 'answer') return send(verdict, reply)
      return andThen(refuse(verdict, request, reply), () => false)
    })
  }

  return function limit(request, reply, ...rest) {
    // Before a body is parsed, hooks are given its stream too.
    continueWith(rest.length === 1 ? rest[0] : rest[1], () => admit(request, reply))
  }
}

/** Only where it is asked for, since a hook costs every response. */
const takeOffOnRedirect: onSendHookHandler = (request, reply, _payload, goOn) => {
  const fields = fieldsOnHead(request, reply.statusCode)
  if (fields.length > 0) setFields(new ReplyView(reply), fields)
  goOn()
}

function withHook(hooks: RouteOptions['onSend']): onSendHookHandler[] {
  const others = hooks === undefined ? [] : hooks
  return [takeOffOnRedirect, ...(Array.isArray(others) ? others : [others])]
}

/** Replies with the body of a refusal, or with what a handler of the user's makes of it. What that throws goes to the error handler of Fastify. */
function refuse(
  reject: Reject<RateLimitHandler>,
  request: FastifyRequest,
  reply: FastifyReply,
): MaybePromise<void> {
  const { status, body, handler, decision } = reject
  if (body) return void send({ status, body }, reply)
  if (handler === 'throw') {
    reply.code(status)
    throw new RateLimitError(reject)
  }
  // Not `code`, after which a redirect would keep the status.
  reply.raw.statusCode = status
  const threw = (thrown: unknown): never => {
    // What is no Error is a body, and has no status of its own.
    if (!(thrown instanceof Error) && !hasStatus(thrown)) reply.code(status)
    throw thrown
  }
  try {
    const payload = andThen(handler?.(request, reply, decision), (known) => {
      if (known !== undefined && !reply.sent) reply.send(known)
    })
    return isPromise(payload) ? payload.catch(threw) : payload
  } catch (error) {
    return threw(error)
  }
}

function hasStatus(thrown: unknown): boolean {
  return (
    typeof thrown === 'object' && thrown !== null && ('statusCode' in thrown || 'status' in thrown)
  )
}

/** @returns that the request goes no further */
function send({ status, body }: Pick<Answer, 'status' | 'body'>, reply: FastifyReply): false {
  // To a text Fastify would add a charset, which problem+json does not have.
  reply.code(status).type(body.contentType).send(Buffer.from(body.text))
  return false
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
