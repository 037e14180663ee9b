// A Worker whose isolates share their counts: the sixth request within ten seconds gets a 429.
import { env } from 'cloudflare:workers'
import { rateLimit } from '@sluice/fetch'
import { durableObjectStore } from './durable-object-store.ts'

export { Counts } from './counts.ts'

const limited = rateLimit({
  store: durableObjectStore(env.COUNTS),
  limit: 5,
  window: '10s',
  addressOf: (request) => request.headers.get('cf-connecting-ip') ?? undefined,
})
const handler = limited(() => new Response('hello\n'))

interface Context {
  waitUntil(work: Promise<unknown>): void
}

export default {
  fetch: (request: Request, _env: object, context: Context) =>
    handler(request, { waitUntil: (work) => context.waitUntil(work) }),
}
