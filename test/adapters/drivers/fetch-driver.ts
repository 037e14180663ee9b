import type { Server } from 'node:http'
import { createAdaptorServer, type HttpBindings } from '@hono/node-server'
import {
  type FetchHandler,
  type FetchInfo,
  mount,
  type RateLimitHandler,
  type RateLimitOptions,
  rateLimit,
} from '@sluice/fetch'
import { nodeRouter } from '@sluice/http/adapter'
import {
  type AppSetup,
  type Driver,
  type Limits,
  type NativeRequest,
  type Route,
  type RunningApp,
  runningOn,
  statusOf,
} from './driver.ts'

/** Handlers of fetch, behind a server of Node. */
export const fetchDriver: Driver = {
  name: 'fetch',
  refusesAlone: true,
  startsLate: true,
  missesPipelined: true,
  start,
}

async function start(setup: AppSetup): Promise<RunningApp> {
  const { limits = [], routes = [{ path: '/' }], mounts = [] } = setup
  const mounted = mounts.map(([path, handler]) => mount(handler, path))
  const handlers = routes.map((route) => ({ route, handler: handlerOf(route, setup) }))
  let app: FetchHandler<FetchInfo> = async (request, info, decision) => {
    const found = handlers.find(({ route }) => matches(route, request))
    if (found) return found.handler(request, info, decision)
    return new Response('not found', { status: 404, headers: headersOf(setup.before) })
  }
  for (const options of [...limits].reverse()) app = limiterOf(options, setup)(app)

  async function answer(sent: Request, { incoming }: HttpBindings): Promise<Response> {
    const { remoteAddress } = incoming.socket
    const request = readable(sent)
    try {
      for (const page of mounted) {
        const reply = await page(request, { remoteAddress })
        if (reply) return reply
      }
      return await app(request, { remoteAddress }, undefined)
    } catch (error) {
      setup.onError?.(error as Error)
      return new Response((error as Error).message, { status: 500 })
    }
  }

  const server = createAdaptorServer({ fetch: answer as never, overrideGlobalObjects: false })
  return runningOn(server.listen(0, '127.0.0.1') as Server)
}

/** A request with its headers as properties too, as behaviours read them. */
function readable(request: Request): Request {
  Object.assign(request.headers, Object.fromEntries(request.headers))
  return request
}

function matches({ method = 'GET', path }: Route, request: Request): boolean {
  const { pathname } = new URL(request.url)
  const asked = request.method === 'HEAD' ? 'GET' : request.method
  const pattern = path.replaceAll(/:\w+/g, '[^/]+').replace(/\*$/, '.*')
  return (method === 'ALL' || method === asked) && new RegExp(`^${pattern}/?$`, 'i').test(pathname)
}

function handlerOf(route: Route, setup: AppSetup): FetchHandler<FetchInfo> {
  const { method = 'GET', path, limits, answer = {}, reached, streams } = route
  const handler: FetchHandler<FetchInfo> = async (request, _info, decision) => {
    const native = Object.assign(request, { rateLimit: decision }) as never as NativeRequest
    const headers = headersOf(setup.before)
    const run = () => reached?.(native)
    if (streams) return new Response(streamed(run), { headers })
    await reached?.(native)
    for (const [name, value] of Object.entries(answer.fields ?? {})) headers.set(name, value)
    const status = statusOf(route, native)
    return new Response(status === 304 ? null : 'hello', { status, headers })
  }
  if (!limits) return handler
  const place = method === 'ALL' ? path : `${method} ${path}`
  return limiterOf(limits, setup, place)(handler)
}

/** A body that begins before `then` is called. */
export function streamed(then: () => unknown): ReadableStream {
  const parts = [async () => 'first ', async () => Promise.resolve(then()).then(() => 'hello')]
  return new ReadableStream({
    async pull(controller) {
      const part = parts.shift()
      if (part) controller.enqueue(new TextEncoder().encode(await part()))
      else controller.close()
    },
  })
}

function headersOf(before: AppSetup['before'] = {}): Headers {
  const lines = Object.entries(before).flatMap(([name, value]) =>
    [value].flat().map((line): [string, string] => [name, line]),
  )
  return new Headers(lines)
}

function limiterOf({ reply, ...options }: Limits, { trustProxy }: AppSetup, route?: string) {
  const handler: RateLimitHandler = async (_request, _info, decision) =>
    new Response(await reply?.(decision), { status: 418 })
  const addressOf: RateLimitOptions['addressOf'] = (request, { remoteAddress }) =>
    remoteAddress === trustProxy
      ? (request.headers.get('x-forwarded-for')?.split(',').at(-1)?.trim() ?? remoteAddress)
      : remoteAddress
  return rateLimit({
    ...options,
    router: nodeRouter,
    ...(route !== undefined && { route }),
    ...(trustProxy !== undefined && { addressOf }),
    ...(reply && { handler }),
  } as never)
}
