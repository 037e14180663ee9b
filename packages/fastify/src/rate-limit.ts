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
  type MaybePromise,
  oneOf,
  type Passage,
  processWide,
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
  HookHandlerDoneFunction,
  onSendHookHandler,
  RouteOptions,
} from 'fastify'
import fastifyPlugin from 'fastify-plugin'
import { hooks, type RateLimitHandler, type RateLimitPluginOptions } from './options.ts'
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
  const { hook: wanted, global, ...limits } = options
  const hook = oneOf(given(wanted, 'onRequest'), { option: 'hook' }, hooks)
  const guard: PluginGuard = createGuard(limits, {
    where: 'rateLimitPlugin',
    adapterFields: ['hook', 'global'],
    scope: fastify.prefix,
    routing: { ...routingOf(fastify), prefix: fastify.prefix },
    isGlobal: flag(global, { option: 'global' }, true),
  })

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

  /** Whether the request goes on; if not, it was replied to. */
  function admit(request: FastifyRequest, reply: FastifyReply): MaybePromise<boolean> {
    const response = new ReplyView(reply)
    const exchange: Exchange<FastifyRequest> = {
      native: request,
      request: new RequestView(request),
      response,
      scope: fastify.prefix,
      whenOver: (hold) => settleAfter(reply.raw, request.raw.socket, hold),
    }
    const passage = check(exchange)
    return andThen(passage, ({ decision, verdict, hold }) => {
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

  function limit(
    request: FastifyRequest,
    reply: FastifyReply,
    goOn: HookHandlerDoneFunction,
  ): void {
    continueWith(goOn, () => admit(request, reply))
  }

  if (!fastify.hasRequestDecorator('rateLimit')) fastify.decorateRequest('rateLimit', undefined)

  nearest.set(fastify, { guard, hook })
  fastify.addHook('onRegister', (child) => {
    nearest.set(child, { guard, hook })
  })
  fastify.addHook('onRoute', function checkRateLimit(route) {
    const own = route.config?.rateLimit
    if (own === undefined || own === false || nearest.get(this)?.guard !== guard) return
    const { setup } = guard.ofRoute(own, `config.rateLimit of ${String(route.method)} ${route.url}`)
    if (setup.hideOnRedirect && !guard.hidesOnRedirect) route.onSend = withHook(route.onSend)
  })
  if (hook === 'preParsing') fastify.addHook(hook, (req, reply, _, goOn) => limit(req, reply, goOn))
  else fastify.addHook(hook, limit)
  if (guard.hidesOnRedirect) fastify.addHook('onSend', takeOffOnRedirect)
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

/** Replies with the body of a refusal, or with what a handler of the user's makes of it. */
function refuse(
  { status, body, handler, decision }: Reject<RateLimitHandler>,
  request: FastifyRequest,
  reply: FastifyReply,
): MaybePromise<void> {
  if (body) return void send({ status, body }, reply)
  reply.code(status)
  return andThen(handler?.(request, reply, decision), (payload) => {
    if (payload !== undefined && !reply.sent) reply.send(payload)
  })
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
