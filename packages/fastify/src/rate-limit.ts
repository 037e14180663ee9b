import {
  andThen,
  continueWith,
  createGuard,
  fieldsOnHead,
  flag,
  given,
  type MaybePromise,
  oneOf,
  type Reject,
  setFields,
  settleAfter,
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
import { hooks, type RateLimitPluginOptions } from './options.ts'
import { ReplyView, RequestView, scopeOf } from './request-view.ts'
import { type RateLimitGuard, RouteGuards } from './route-guards.ts'

/** The guards of the last plugin whose hooks an instance has: it answers for the routes that have limits of their own. */
const nearest = new WeakMap<FastifyInstance, RouteGuards>()

const register: FastifyPluginAsync<RateLimitPluginOptions> = async (fastify, options) => {
  const hook = oneOf(given(options.hook, 'onRequest'), { option: 'hook' }, hooks)
  const isGlobal = flag(options.global, { option: 'global' }, true)
  const routes = new RouteGuards(options)
  const everywhere = isGlobal
    ? createGuard(options, { where: 'rateLimitPlugin', adapterFields: ['hook', 'global'] })
    : undefined

  function guardOf(request: FastifyRequest): RateLimitGuard | undefined {
    const own = request.routeOptions.config.rateLimit
    if (own === undefined) return everywhere
    return own === false || nearest.get(request.server) !== routes ? undefined : routes.of(own)
  }

  /** Whether the request goes on; if not, it was replied to. */
  function admit(request: FastifyRequest, reply: FastifyReply): MaybePromise<boolean> {
    const guard = guardOf(request)
    if (!guard) return true
    const response = new ReplyView(reply)
    const scope = guard === everywhere ? fastify.prefix : scopeOf(request)
    const passage = guard.check({
      native: request,
      request: new RequestView(request),
      response,
      scope,
    })
    return andThen(passage, ({ decision, verdict, hold }) => {
      if (hold) settleAfter(reply.raw, request.raw.socket, hold)
      if (decision) request.rateLimit = decision
      setFields(response, verdict.fields)
      if (verdict.action === 'pass') return true
      if (verdict.action === 'delay') return verdict.turn
      if (response.headersSent) return false
      const handle = guard.handler
      return andThen(
        refuse(reply, verdict, () => handle?.(request, reply, verdict.decision)),
        () => false,
      )
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

  nearest.set(fastify, routes)
  fastify.addHook('onRegister', (child) => {
    nearest.set(child, routes)
  })
  fastify.addHook('onRoute', function checkRateLimit(route) {
    const own = route.config?.rateLimit
    if (own === undefined || own === false || nearest.get(this) !== routes) return
    routes.of(own)
    if (own.hideOnRedirect && !options.hideOnRedirect) route.onSend = withHook(route.onSend)
  })
  if (hook === 'preParsing') fastify.addHook(hook, (req, reply, _, goOn) => limit(req, reply, goOn))
  else fastify.addHook(hook, limit)
  if (options.hideOnRedirect) fastify.addHook('onSend', takeOffOnRedirect)
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
  reply: FastifyReply,
  { status, body }: Reject,
  handle: () => unknown,
): MaybePromise<void> {
  reply.code(status)
  if (!body) {
    return andThen(handle(), (payload) => {
      if (payload !== undefined && !reply.sent) reply.send(payload)
    })
  }
  // To a text Fastify would add a charset, which problem+json does not have.
  reply.type(body.contentType).send(Buffer.from(body.text))
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
