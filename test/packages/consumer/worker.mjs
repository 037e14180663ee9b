// A Worker of Cloudflare: runs the kit of stores inside, and answers limited requests.
import { memoryStore } from '@sluice/core'
import { rateLimit } from '@sluice/fetch'
import { rateLimit as limitHono } from '@sluice/hono'
import { storeConformance } from '@sluice/testing'
import { Hono } from 'hono'
import { runKit } from './run-kit.mjs'

const addressOf = (request) => request.headers.get('cf-connecting-ip') ?? undefined
const limited = rateLimit({ limit: 5, window: '10s', addressOf })(() => new Response('hello'))

const hono = new Hono()
hono.use(limitHono({ limit: 5, window: '10s', addressOf: (c) => c.req.header('cf-connecting-ip') }))
hono.get('*', (c) => c.text('hello'))

/** Its response goes on for 300 ms. */
const slots = rateLimit({ algorithm: 'concurrency', limit: 1, addressOf })(() => {
  const { readable, writable } = new TransformStream()
  const writer = writable.getWriter()
  void writer
    .write(new TextEncoder().encode('hello'))
    .then(() => scheduler.wait(300))
    .then(() => writer.close())
  return new Response(readable)
})

const kit = () =>
  runKit((runner) => storeConformance({ ...runner, open: () => ({ store: memoryStore() }) }))

export default {
  async fetch(request, env, context) {
    const { pathname } = new URL(request.url)
    const info = { waitUntil: (work) => context.waitUntil(work) }
    if (pathname === '/kit') return Response.json(await kit())
    if (pathname === '/slots') return slots(request, info)
    return pathname === '/hono' ? hono.fetch(request, env, context) : limited(request, info)
  },
}
