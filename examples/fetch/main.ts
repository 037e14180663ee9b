// Handlers of fetch, here on Node: a limit for everybody by address, a tighter one for a route, and two quotas for clients with an API key.
import { type HttpBindings, serve } from '@hono/node-server'
import {
  all,
  apiKey,
  type FetchHandler,
  type FetchInfo,
  firstOf,
  ip,
  rateLimit,
  user,
} from '@sluice/fetch'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'

const url = process.env.REDIS_URL
const shared = url ? { store: redisStore(new Redis(url)) } : {}

// Logging in, counted apart from everything else: 5 tries a minute for an account from an address, and 20 for the address.
const logins = rateLimit({
  ...shared,
  route: 'POST /login',
  policies: [
    {
      limit: 5,
      window: '1m',
      // Of a copy, since the handler reads the body too.
      key: all(
        user(async (request) => nameIn(await request.clone().text())),
        ip(),
      ),
    },
    { limit: 20, window: '1m', key: ip() },
  ],
})
const login = logins(() => Response.json({ error: 'wrong password' }, { status: 401 }))

// In place of a database: anybody can make up a key, so only those count that were issued.
const issued = new Set(['a', 'b'])

// The API: two quotas at once, all or nothing, by API key, else by address. A search costs 5 units.
const api = rateLimit({
  ...shared,
  key: firstOf(apiKey({ verify: (key) => issued.has(key) }), ip()),
  cost: ({ url }) => (new URL(url).pathname === '/api/search' ? 5 : 1),
  policies: [
    { name: 'burst', limit: 10, window: '1s' },
    { name: 'sustained', limit: 600, window: '1m' },
  ],
})
const search = api((_request, _info, decision) =>
  Response.json({ left: decision?.outcomes.map(({ remaining }) => remaining) }),
)

const handlers = new Map<string, ReturnType<typeof api>>([
  ['POST /login', login],
  ['GET /api/search', search],
])
const site: FetchHandler<FetchInfo> = (request, info) => {
  const handler = handlers.get(`${request.method} ${new URL(request.url).pathname}`)
  return handler ? handler(request, info) : new Response('not found', { status: 404 })
}

// Everything: 100 requests a minute for each address.
const everything = rateLimit({ ...shared, limit: 100, window: '1m' })(site)

function nameIn(body: string): string | undefined {
  return /"name":"([^"]+)"/.exec(body)?.[1]
}

// On Node the address is that of the socket.
async function answer(request: Request, { incoming }: HttpBindings): Promise<Response> {
  return everything(request, { remoteAddress: incoming.socket.remoteAddress })
}
serve(
  {
    fetch: (request, env) => answer(request, env as HttpBindings),
    port: Number(process.env.PORT ?? 3000),
  },
  ({ port }) => console.log(`listening on ${port}`),
)
