// npm start: the same limit in Express and in Fastify, 5 requests per 10 seconds for each client.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expressApp } from './express-app.ts'
import { fastifyApp } from './fastify-app.ts'
import { openStore } from './open-store.ts'

const port = readPort(process.env.PORT ?? '3000')
const { store, about } = await openStore(process.env.REDIS_URL)

const express = expressApp(store).listen(port)
const fastify = fastifyApp(store)
try {
  await once(express, 'listening')
  await fastify.listen({ port: port + 1, host: '::' })
} catch (error) {
  explain(error)
}

console.log(`Sluice limits ${about}: 5 requests per 10 seconds for each client.`)
console.log(`  Express  http://localhost:${(express.address() as AddressInfo).port}/`)
console.log(`  Fastify  http://localhost:${port + 1}/`)
console.log(`Try:  for i in 1 2 3 4 5 6; do curl -i http://localhost:${port}/; done`)

function readPort(text: string): number {
  const number = Number(text)
  if (Number.isInteger(number) && number >= 1 && number <= 65_534) return number
  console.error(
    `PORT must be a whole number from 1 to 65534, but is '${text}': Fastify takes the next one.`,
  )
  process.exit(1)
}

function explain(error: unknown): never {
  const { code, port: taken } = error as NodeJS.ErrnoException & { port?: number }
  if (code !== 'EADDRINUSE') throw error
  console.error(
    `Port ${taken} is in use. Choose two free ones in a row with PORT, as in: PORT=4000 npm start`,
  )
  process.exit(1)
}
