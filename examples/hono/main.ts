// Hono: a limit for everybody by address, a tighter one for a route, and two quotas for clients with an API key.
import { serve } from '@hono/node-server'
import { all, apiKey, firstOf, ip, rateLimit, user } from '@sluice/hono'
import { redisStore } from '@sluice/redis'
import { Hono } from 'hono'
import { Redis } from 'ioredis'

const url = process.env.REDIS_URL
const shared = url ? { store: redisStore(new Redis(url)) } : {}
const app = new Hono()

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
        user(async (c) => nameIn(await c.req.text())),
        ip(),
      ),
    },
    { limit: 20, window: '1m', key: ip() },
  ],
})
app.post('/login', logins, (c) => c.json({ error: 'wrong password' }, 401))

// In place of a database: anybody can make up a key, so only those count that were issued.
const issued = new Set(['a', 'b'])

// The API: two quotas at once, all or nothing, by API key, else by address. A search costs 5 units.
const api = rateLimit({
  ...shared,
  key: firstOf(apiKey({ verify: (key) => issued.has(key) }), ip()),
  cost: (c) => (c.req.path === '/api/search' ? 5 : 1),
  policies: [
    { name: 'burst', limit: 10, window: '1s' },
    { name: 'sustained', limit: 600, window: '1m' },
  ],
})
app.get('/api/search', api, (c) =>
  c.json({ left: c.get('rateLimit')?.outcomes.map(({ remaining }) => remaining) }),
)

function nameIn(body: string): string | undefined {
  return /"name":"([^"]+)"/.exec(body)?.[1]
}

serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3000) }, ({ port }) => {
  console.log(`listening on ${port}`)
})
