// Express: a limit for everybody by address, a tighter one for a route, and two quotas for clients with an API key.
import { apiKey, firstOf, ip, rateLimit } from '@sluice/express'
import { redisStore } from '@sluice/redis'
import express from 'express'
import { Redis } from 'ioredis'

const url = process.env.REDIS_URL
const shared = url ? { store: redisStore(new Redis(url)) } : {}
const app = express()

// Pages of any origin may read the answers; `exposeHeaders` below lets them see the headers that tell how long to wait.
app.use((_request, response, next) => {
  response.set('Access-Control-Allow-Origin', '*')
  next()
})

// Everything: 100 requests a minute for each address.
app.use(rateLimit({ ...shared, limit: 100, window: '1m' }))

// Logging in: 5 tries a minute, counted apart from everything else.
app.post('/login', rateLimit({ ...shared, limit: 5, window: '1m' }), (_request, response) => {
  response.status(401).json({ error: 'wrong password' })
})

// The API: two quotas at once, all or nothing, by API key, else by address. A search costs 5 units.
const api = rateLimit({
  ...shared,
  key: firstOf(apiKey(), ip()),
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
