// Proxies to a model on Express and on Fastify, which limit tokens and money while the model streams. npm start -w examples/budgets shows what some
// requests cost, and ends PORT=3000 npm start -w examples/budgets then listens: Express on that port, and Fastify on the next one
import { once } from 'node:events'
import type { Server } from 'node:http'
import { showCosts } from './client.ts'
import { expressProxy } from './express-proxy.ts'
import { fastifyProxy } from './fastify-proxy.ts'
import { createVendor } from './vendor.ts'

const port = Number(process.env.PORT ?? 0)
const vendor = await listening(createVendor().listen(0, '127.0.0.1'))
const express = await listening(expressProxy(vendor.url).listen(port, '127.0.0.1'))
const fastify = await fastifyProxy(vendor.url)
const fastifyUrl = await fastify.listen({ port: port && port + 1, host: '127.0.0.1' })

await showCosts(`${express.url}/v1/chat/completions`, 'gpt-small')
await showCosts(`${fastifyUrl}/v1/messages`, 'claude-small')

if (port > 0) console.log(`\nlistening on ${port} (Express) and ${port + 1} (Fastify)`)
else {
  await fastify.close()
  for (const { server } of [express, vendor]) server.close()
}

async function listening(
  server: Server,
): Promise<{ readonly server: Server; readonly url: string }> {
  await once(server, 'listening')
  const address = server.address()
  return {
    server,
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : address}`,
  }
}
