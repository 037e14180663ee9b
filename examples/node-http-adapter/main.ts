// node:http with a custom adapter: 5 requests per 10 seconds for each client.
import { createServer } from 'node:http'
import { rateLimit } from './rate-limit.ts'

const limit = rateLimit({ limit: 5, window: '10s' })
const server = createServer(async (request, response) => {
  if (await limit(request, response)) response.end('hello')
})
server.listen(Number(process.env.PORT ?? 3000), () => {
  const address = server.address()
  console.log(`listening on ${typeof address === 'object' ? address?.port : address}`)
})
