import { setTimeout as sleep } from 'node:timers/promises'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { serve } from '../admin/serve.ts'
import { startTcpProxy } from '../faults/tcp-proxy.ts'
import { startRedis } from '../support/redis-server.ts'
import { limitsAfter } from './express-limits.ts'
import { createShop } from './express-shop.ts'
import { createNotes, notesAfter } from './fastify-notes.ts'

// APPS_MINUTES=60 npm run test:proofs -- apps/endurance: the applications that moved, under load for an hour, while their Redis fails.

const minutes = Number(process.env.APPS_MINUTES ?? 0.4)
const clients = 20

it('applications that moved answer every request, whatever Redis does', {
  timeout: (minutes + 1) * 60_000,
}, async () => {
  let server = await startRedis()
  onTestFinished(() => server.stop())
  await using proxy = await startTcpProxy(server.port)
  const client = new Redis(proxy.port, { retryStrategy: () => 200 })
  client.on('error', () => undefined)
  const store = redisStore(client)
  onTestFinished(() => void store.close().finally(() => client.disconnect()))
  const app = await createNotes(notesAfter(store))
  onTestFinished(() => app.close())
  const shop = await serve(createShop(limitsAfter(store)))
  const notes = await app.listen({ port: 0, host: '127.0.0.1' })
  const headers = { 'content-type': 'application/json' }
  const wrong = { method: 'POST', headers, body: '{"name":"ada","password":"guess"}' }
  const asked: readonly { readonly url?: string; readonly init?: RequestInit }[] = [
    { url: `${shop}/products` },
    { url: `${shop}/health` },
    { url: `${shop}/login`, init: wrong },
    { url: `${shop}/admin/accounts` },
    { url: `${notes}/notes` },
    { url: `${notes}/health` },
    { url: `${notes}/login`, init: wrong },
    { url: `${notes}/admin/users` },
  ]
  const statuses: Record<number, number> = {}
  const waits: number[] = []
  let isOver = false
  async function ask(client: number): Promise<void> {
    for (let turn = client; !isOver; turn += 1) {
      const { url = '', init } = asked[turn % asked.length] ?? {}
      const headers = { ...init?.headers, 'x-forwarded-for': `203.0.113.${client}` }
      const beganAt = performance.now()
      const response = await fetch(url, { ...init, headers })
      await response.arrayBuffer()
      waits.push(performance.now() - beganAt)
      statuses[response.status] = (statuses[response.status] ?? 0) + 1
      if (response.status === 429)
        expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
      await sleep(100)
    }
  }
  const faults = [
    async () => {
      server.pause()
      await sleep(3_000)
      server.resume()
    },
    async () => {
      await server.kill()
      await sleep(3_000)
      server = await startRedis({ port: server.port })
    },
    async () => proxy.reset(),
    async () => {
      proxy.disturb({ replyDelayMs: 150, cutEvery: 20 })
      await sleep(3_000)
      proxy.disturb({})
    },
  ]
  const load = Array.from({ length: clients }, (_, client) => ask(client))
  const endsAt = performance.now() + minutes * 60_000
  for (let i = 0; performance.now() < endsAt; i += 1) {
    await sleep(3_000)
    await faults[i % faults.length]?.()
  }
  isOver = true
  await Promise.all(load)
  waits.sort((one, other) => one - other)
  const at = (share: number) => waits[Math.floor(waits.length * share)]?.toFixed(0)
  console.info(
    `${waits.length} requests in ${minutes} min: ${JSON.stringify(statuses)}, ${at(0.5)} ms at the median, ${at(0.999)} at 99.9%, ${at(0.999999)} at most`,
  )
  expect(Object.keys(statuses)).toEqual(['200', '401', '403', '429'])
})
