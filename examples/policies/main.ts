// Express, with limits in a file that may be edited while the API runs. With REDIS_URL, several processes share the counts.
import { fileURLToPath } from 'node:url'
import { memoryStore, rateLimit, user } from '@sluice/express'
import { openPolicies } from '@sluice/policies'
import { redisStore } from '@sluice/redis'
import express from 'express'
import { Redis } from 'ioredis'

const url = process.env.REDIS_URL
const store = url ? redisStore(new Redis(url)) : memoryStore()
const file = process.env.POLICIES ?? fileURLToPath(new URL('sluice.yaml', import.meta.url))

const policies = await openPolicies({
  file,
  store,
  onVersion: (version) => console.log(`version ${version} is in force`),
  onRefused: ({ message }) => console.log(`the old version stays in force:\n${message}`),
})

const app = express()
app.use(rateLimit({ policies, store, keys: { user: user((request) => request.get('x-user')) } }))

app.get(['/', '/login'], (request, response) => {
  const left = request.rateLimit?.outcomes.map(({ remaining }) => remaining)
  response.json({ version: policies.version, left })
})

const server = app.listen(Number(process.env.PORT ?? 3000), () => {
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : address
  console.log(`Edit ${file}, and try: curl -i http://localhost:${port}/`)
})
