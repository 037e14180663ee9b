// Express with an admin page under /limits, and clients that keep it busy. With REDIS_URL, several processes share it.
import { fileURLToPath } from 'node:url'
import { createAdmin } from '@sluice/admin'
import { memoryStore, mount, rateLimit, user } from '@sluice/express'
import { collectMetrics } from '@sluice/metrics'
import { openPolicies } from '@sluice/policies'
import { createQueue, createWorker, memoryBroker } from '@sluice/queue'
import { redisStore } from '@sluice/redis'
import express from 'express'
import { Redis } from 'ioredis'

const url = process.env.REDIS_URL
const store = url ? redisStore(new Redis(url)) : memoryStore()
const file = process.env.POLICIES ?? fileURLToPath(new URL('sluice.yaml', import.meta.url))
const policies = await openPolicies({
  file,
  store,
  observers: {
    onVersion: (version) => console.log(`version ${version} is in force`),
    onRefused: ({ message }) => console.log(`the old version stays in force:\n${message}`),
  },
})
// The names of users are no secret here; without reveal the page shows digests.
const metrics = collectMetrics({ store, reveal: (key) => key.replace('@user/', 'user ') })
const queue = createQueue({ broker: memoryBroker({ name: 'reports' }) })
createWorker({
  broker: queue.broker,
  attempts: 1,
  async handler({ payload }) {
    if (String(payload).endsWith('7')) throw new Error('the printer is out of paper')
  },
})

const app = express()
app.use(
  '/limits',
  mount(createAdmin({ policies, metrics, queues: [queue], authorize: 'localhost' })),
)
app.use(
  rateLimit({
    policies,
    store,
    keys: { user: user((request) => request.get('x-user')) },
    observers: [metrics],
  }),
)
app.all('/{*path}', (_request, response) => void response.json({ answer: 42 }))

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : address
  console.log(`Open http://localhost:${port}/limits/, or edit ${file}`)
  if (process.env.TRAFFIC !== 'off') beClients(`http://127.0.0.1:${port}`)
})

/** Some users ask now and then, one asks far too often, and one guesses passwords. */
function beClients(origin: string): void {
  const users = ['ada', 'grace', 'linus', 'acme', 'robot']
  let number = 0
  setInterval(() => {
    const name = users[Math.floor(Math.random() ** 0.3 * users.length)] ?? 'robot'
    void visit(`${origin}/items/${number % 10}`, 'GET', name)
    if (number % 20 === 0) void visit(`${origin}/login`, 'POST', 'mallory')
    if (number % 30 === 0) void queue.enqueue({ identity: name, payload: `report ${number / 30}` })
    number += 1
  }, 50)
}

async function visit(address: string, method: string, name: string): Promise<void> {
  try {
    const response = await fetch(address, { method, headers: { 'x-user': name } })
    await response.body?.cancel()
  } catch {
    // The server has ended before this client.
  }
}
