// Koa: a limit for everybody by address, a tighter one for a route, and two quotas for clients with an API key.
import bodyParser from '@koa/bodyparser'
import Router from '@koa/router'
import { all, apiKey, firstOf, ip, rateLimit, user } from '@sluice/koa'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import Koa from 'koa'

const url = process.env.REDIS_URL
const shared = url ? { store: redisStore(new Redis(url)) } : {}
const app = new Koa()
const router = new Router()

// Everything: 100 requests a minute for each address.
app.use(rateLimit({ ...shared, limit: 100, window: '1m' }))

// Logging in, counted apart from everything else: 5 tries a minute for an account from an address, and 20 for the address.
const logins = rateLimit({
  ...shared,
  policies: [
    {
      limit: 5,
      window: '1m',
      key: all(
        user((context) => nameIn(context.request.body)),
        ip(),
      ),
    },
    { limit: 20, window: '1m', key: ip() },
  ],
})
router.post('/login', bodyParser(), logins, (context) => {
  context.status = 401
  context.body = { error: 'wrong password' }
})

// In place of a database: anybody can make up a key, so only those count that were issued.
const issued = new Set(['a', 'b'])

// The API: two quotas at once, all or nothing, by API key, else by address. A search costs 5 units.
const api = rateLimit({
  ...shared,
  key: firstOf(apiKey({ verify: (key) => issued.has(key) }), ip()),
  cost: (context) => (context.path === '/api/search' ? 5 : 1),
  policies: [
    { name: 'burst', limit: 10, window: '1s' },
    { name: 'sustained', limit: 600, window: '1m' },
  ],
})
router.get('/api/search', api, (context) => {
  context.body = { left: context.rateLimit?.outcomes.map(({ remaining }) => remaining) }
})

function nameIn(body: unknown): string | undefined {
  return typeof body === 'object' && body !== null && 'name' in body ? String(body.name) : undefined
}

app.use(router.routes())
const server = app.listen(Number(process.env.PORT ?? 3000), () => {
  const address = server.address()
  console.log(`listening on ${typeof address === 'object' ? address?.port : address}`)
})
