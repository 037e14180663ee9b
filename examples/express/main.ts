// Express: a limit for everybody by address, a tighter one for a route, and two quotas for clients with an API key.
import { all, apiKey, firstOf, ip, rateLimit, user } from '@sluice/express'
import { redisStore } from '@sluice/redis'
import express from 'express'
import { Redis } from 'ioredis'

const url = process.env.REDIS_URL
const shared = url ? { store: redisStore(new Redis(url)) } : {}
const app = express()

// Pages of any origin may read the responses; `exposeHeaders` below lets them see how long to wait.
app.use((_request, response, next) => {
  response.set('Access-Control-Allow-Origin', '*')
  next()
})

// Everything: 100 requests a minute for each address.
app.use(rateLimit({ ...shared, limit: 100, window: '1m' }))

// Logins, counted separately: 5 attempts per minute for an account from one address, and 20 for the address.
const logins = rateLimit({
  ...shared,
  policies: [
    {
      limit: 5,
      window: '1m',
      key: all(
        user((request) => request.body?.name),
        ip(),
      ),
    },
    { limit: 20, window: '1m', key: ip() },
  ],
})
app.post('/login', express.json(), logins, (_request, response) => {
  response.status(401).json({ error: 'wrong password' })
})

// Stands in for a database: anybody can make up a key, so only issued keys count.
const issued = new Set(['a', 'b'])

// The API: two quotas at once, all or nothing, by API key, otherwise by address. A search costs 5 units.
const api = rateLimit({
  ...shared,
  key: firstOf(apiKey({ verify: (key) => issued.has(key) }), ip()),
  exposeHeaders: true,
  cost: (request) => (request.path === '/api/search' ? 5 : 1),
  policies: [
    { name: 'burst', limit: 10, window: '1s' },
    { name: 'sustained', limit: 600, window: '1m' },
  ],
})
app.get('/api/search', api, (request, response) => {
  response.json({ left: request.rateLimit?.outcomes.map(({ remaining }) => remaining) })
})

const server = app.listen(Number(process.env.PORT ?? 3000), () => {
  const address = server.address()
  console.log(`listening on ${typeof address === 'object' ? address?.port : address}`)
})
