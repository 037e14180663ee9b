import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import {
  createGuard,
  handlerRequest,
  NodeRequestContext,
  type Refusal,
  routeScope,
  sendByNode,
  serve,
} from '@sluice/http/adapter'
import {
  type AppSetup,
  type Driver,
  type Limits,
  type Route,
  runningOn,
  statusOf,
} from '../adapters/drivers/driver.ts'
import { exactRouting } from './exchange.ts'

type NodeRequest = IncomingMessage &
  Readonly<Record<'method' | 'url' | 'originalUrl', string>> & { readonly trusts: boolean }
type Reply = NonNullable<Limits['reply']>
type Place = Readonly<{ route: string | undefined; scope: string }>

/** `node:http` with the kit, and no framework between: what the guard does is tried here. */
export const nodeDriver: Driver = { name: 'node:http', start }

async function start(setup: AppSetup) {
  const limiters = (setup.limits ?? []).map((options) => limiterOf(options))
  const routes = (setup.routes ?? [{ path: '/' }]).map(limited)
  const server = createServer(async (request, response) => {
    const { method = 'GET', url = '/' } = request
    const trusts = request.socket.remoteAddress === setup.trustProxy
    const native = Object.assign(request, { method, url, originalUrl: url, trusts })
    try {
      for (const [path, handler] of setup.mounts ?? []) {
        if (!`${url}/`.startsWith(`${path}/`)) continue
        const answer = await handler(handlerRequest(new NodeContext(native, response), path))
        if (answer) return sendByNode(response, answer)
      }
      for (const limit of limiters) if (!(await limit(native, response))) return
      const found = routes.find(({ matches }) => matches(native))
      if (!found) return sendByNode(response, { status: 404 })
      if (found.limit && !(await found.limit(native, response))) return
      await answerBy(found.route, native, response)
    } catch (error) {
      setup.onError?.(error as Error)
      if (response.headersSent) response.end()
      else sendByNode(response, { status: 500, body: (error as Error).message })
    }
  })
  return runningOn(server.listen(0, '127.0.0.1'))
}

async function answerBy(route: Route, native: NodeRequest, response: ServerResponse) {
  if (route.streams) response.write('first ')
  await route.reached?.(native)
  if (response.headersSent) response.end('hello')
  else {
    const headers = route.answer?.fields ?? {}
    sendByNode(response, { status: statusOf(route, native), headers, body: 'hello' })
  }
}

function limited(route: Route) {
  const { method = 'GET', path, limits } = route
  const pattern = new RegExp(`^${path.replace(/:\w+/g, '[^/]+')}$`)
  const scope = routeScope(method === 'ALL' ? undefined : method, path)
  const matches = (request: NodeRequest) =>
    (method === 'ALL' || method === request.method || `${method}${request.method}` === 'GETHEAD') &&
    pattern.test(pathOf(request))
  return { route, matches, limit: limits && limiterOf(limits, { route: path, scope }) }
}

function limiterOf({ reply, ...options }: Limits, place?: Place) {
  const own = { ...options, ...(reply && { handler: reply }) } as never
  const guard = createGuard<NodeRequest, Reply>(own, {
    where: 'rateLimit',
    routing: exactRouting,
  })
  return (request: NodeRequest, response: ServerResponse) =>
    serve(new NodeContext(request, response, place), guard)
}

const pathOf = ({ url }: NodeRequest) => url.replace(/[?#].*$/s, '')

class NodeContext extends NodeRequestContext<NodeRequest, Reply> {
  readonly response: ServerResponse
  readonly route: string | undefined
  readonly scope: string

  constructor(request: NodeRequest, response: ServerResponse, place?: Place) {
    super(request)
    this.response = response
    this.route = place?.route
    this.scope = place?.scope ?? ''
  }

  get path() {
    return pathOf(this.native)
  }

  /** Of a proxy that is trusted, the address that the proxy has added. */
  get ip() {
    const forwarded = this.native.trusts ? this.header('x-forwarded-for') : undefined
    return forwarded?.split(',').at(-1)?.trim() ?? this.native.socket.remoteAddress
  }

  async callHandler(reply: Reply, { decision }: Refusal) {
    sendByNode(this.response, { status: 418, body: await reply(decision) })
  }
}
