// A Worker of Cloudflare: runs the kit of stores inside, answers limited requests, and has the Durable Object of the example.
import { env } from 'cloudflare:workers'
import { createLimiter, memoryStore } from '@sluice/core'
import { rateLimit } from '@sluice/fetch'
import { rateLimit as limitHono } from '@sluice/hono'
import { storeConformance } from '@sluice/testing'
import { Hono } from 'hono'
import { durableObjectStore } from './durable-object/durable-object-store.ts'
import example, { Counts as ExampleCounts } from './durable-object/worker.ts'
import { runKit } from './run-kit.mjs'

const addressOf = (request) => request.headers.get('cf-connecting-ip') ?? undefined
const five = { limit: 5, window: '10s' }
const oneSlot = { algorithm: 'concurrency', limit: 1 }

/** A response of 300 ms, or of a minute. */
function stream(path) {
  const { readable, writable } = new TransformStream()
  const writer = writable.getWriter()
  const write = async () => {
    for (let part = 0; part < (path.endsWith('long') ? 600 : 3); part += 1) {
      await writer.write(new TextEncoder().encode('hello'))
      await scheduler.wait(100)
    }
    await writer.close()
  }
  write().catch(() => undefined)
  return new Response(readable)
}

const limited = rateLimit({ ...five, addressOf })(() => new Response('hello'))
const slots = rateLimit({ ...oneSlot, addressOf })(({ url }) => stream(url))

const addressOfContext = (c) => c.req.header('cf-connecting-ip')
const hono = new Hono()
hono.use(limitHono({ ...five, addressOf: addressOfContext }))
hono.get('*', (c) => c.text('hello'))
const honoSlots = new Hono()
honoSlots.use(limitHono({ ...oneSlot, addressOf: addressOfContext }))
honoSlots.get('*', (c) => stream(c.req.url))

export class Counts extends ExampleCounts {
  evict() {
    this.ctx.abort('evicted')
  }
}

/** Every test has an object of its own. */
let opened = 0
function openObject(clock) {
  opened += 1
  const name = `object ${opened}`
  return { store: durableObjectStore(env.COUNTS, { clock, denialTtlMs: 0, objectOf: () => name }) }
}
const kitOver = (open) => runKit((runner) => storeConformance({ ...runner, open }))

const counting = createLimiter({
  policies: [{ name: 'many', limit: 37, window: '1h' }],
  store: durableObjectStore(env.COUNTS, {
    ...{ denialTtlMs: 0, objectOf: ({ identity, key }) => identity ?? key },
  }),
  failureMode: 'closed',
  deadlineMs: 10_000,
})
const object = () => env.COUNTS.getByName('everybody')

const pages = {
  '/kit': () => kitOver(() => ({ store: memoryStore() })),
  '/object/kit': () => kitOver(openObject),
  '/object/count': async () => (await counting.consume('everybody')).allowed,
  '/object/evict': () => object().evict().catch(String),
  '/object/sweep': () => object().sweep(Date.now() + 7_200_000),
}

export default {
  async fetch(request, env, context) {
    const { pathname } = new URL(request.url)
    const info = { waitUntil: (work) => context.waitUntil(work) }
    const page = pages[pathname]
    if (page) return Response.json(await page())
    if (pathname.startsWith('/slots')) return slots(request, info)
    if (pathname.startsWith('/hono-slots')) return honoSlots.fetch(request, env, context)
    if (pathname === '/hono') return hono.fetch(request, env, context)
    return pathname === '/object' ? example.fetch(request, env, context) : limited(request, info)
  },
}
