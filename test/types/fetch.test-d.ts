import {
  type FetchHandler,
  firstOf,
  ip,
  type KeyResolver,
  type RateLimitHandler,
  type RateLimitOptions,
  rateLimit,
  user,
} from '@sluice/fetch'
import { nodeRouter } from '@sluice/http/adapter'
import type { FastifyRequest } from 'fastify'

const minute = { limit: 100, window: '1m' } as const

// Functions that are written inline know the request of fetch, inside the resolvers too: express.test-d.ts tries each of them.
rateLimit({ ...minute, key: (request) => request.headers.get('x-user') })
rateLimit({ ...minute, key: user((request) => request.headers.get('x-user')) })
rateLimit({ ...minute, route: 'POST /login' })
rateLimit({ ...minute, handler: (_request, info) => new Response(info.remoteAddress) })
rateLimit({ routes: { '/a': minute }, router: nodeRouter })

// It wraps handlers, which are given what the caller knows of a request, and the decision.
const limited = rateLimit(minute)((_request, info, decision) => {
  const address: string | undefined = info.remoteAddress
  const allowed: boolean | undefined = decision?.allowed
  return new Response(`${address} ${allowed}`)
})
const answer: Promise<Response> = limited(new Request('http://a'), { remoteAddress: '192.0.2.1' })
void answer

// The caller may know something else, such as the context of a route in Next.js.
interface RouteContext {
  readonly params: Promise<{ id: string }>
}
const byRoute = rateLimit<RouteContext>({ ...minute, addressOf: (request) => request.url })
byRoute(async (_request, { params }) => new Response((await params).id))
// @ts-expect-error It has no address.
rateLimit<RouteContext>({ ...minute, addressOf: (_request, info) => info.remoteAddress })
// @ts-expect-error A handler answers with a response.
rateLimit(minute)(() => 'hello')
// @ts-expect-error The caller says what it knows.
limited(new Request('http://a'))

const byUser: KeyResolver<Request> = firstOf((request) => request.url, ip())
const handler: RateLimitHandler = () => new Response('no', { status: 429 })
const options: RateLimitOptions = { ...minute, key: byUser, handler }
const plain: FetchHandler<object> = () => new Response('hello')
rateLimit(options)(plain)

const ofFastify = (request: FastifyRequest) => request.routeOptions.url
// @ts-expect-error Fastify's request is none of fetch.
rateLimit({ ...minute, key: ofFastify })
// @ts-expect-error Nor inside a resolver.
user(ofFastify)
