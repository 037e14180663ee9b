import {
  createLimiter,
  type Limiter,
  memoryStore,
  type PolicyOptions,
  type Store,
} from '@sluice/core'
import { same } from '../assertions.ts'
import type { AdapterBench, AdapterCases, Asking } from './adapter-bench.ts'

/** A handler whose requests stay open until it answers. */
class HeldHandler {
  readonly #waiting: ((status: number) => void)[] = []

  readonly handle = (): Promise<number> => new Promise((resolve) => this.#waiting.push(resolve))

  get held(): number {
    return this.#waiting.length
  }

  answer(status = 200): void {
    for (const resolve of this.#waiting.splice(0)) resolve(status)
  }
}

/** A store, and a function that waits for its count of one key. */
class CountedStore {
  readonly store: Store = memoryStore()
  readonly #limiter: Limiter
  readonly #limit: number
  readonly #bench: AdapterBench

  constructor(bench: AdapterBench, policy: PolicyOptions & { readonly limit: number }) {
    this.#bench = bench
    this.#limiter = createLimiter({ ...policy, store: this.store })
    this.#limit = policy.limit
  }

  comesTo(units: number, promise: string): Promise<void> {
    return this.#bench.until(promise, async () => {
      const { outcomes } = await this.#limiter.peek('ada')
      return this.#limit - (outcomes[0]?.remaining ?? 0) === units
    })
  }
}

const inFlight = { name: 'in-flight', algorithm: 'concurrency', limit: 2 } as const
const counted = { name: 'counted', limit: 5, window: '1m' } as const

/** Tests for leases and units that are settled when a response ends. */
export const settlement: AdapterCases = {
  async 'limits requests in flight, and admits the next when one ends'(bench) {
    const { app, handler, leases } = await holding(bench)
    const open = [app.ask(), app.ask()]
    await bench.until('two requests reach the handler', () => handler.held === 2)
    const refused = await app.ask()
    same(refused.status, 429, 'a third request in flight')
    same(refused.headers['retry-after'], '1', 'Retry-After')
    handler.answer()
    const statuses = (await Promise.all(open)).map(({ status }) => status)
    same(statuses, [200, 200], 'the requests that were in flight')
    await leases.comesTo(0, 'the leases end with the responses')
    const next = app.ask()
    await bench.until('the next request reaches the handler', () => handler.held === 1)
    handler.answer()
    same((await next).status, 200, 'the next request')
  },

  async 'releases a lease when the client disconnects early'(bench) {
    const { app, handler, leases } = await holding(bench)
    const leaving = new AbortController()
    const left = app.ask({ signal: leaving.signal }).catch(() => 'left')
    await bench.until('the request reaches the handler', () => handler.held === 1)
    await leases.comesTo(1, 'the request holds a lease')
    leaving.abort()
    await leases.comesTo(0, 'the lease ends when the client has left')
    handler.answer()
    same(await left, 'left', 'the client')
  },

  async 'releases a lease after the response, although the connection stays open'(bench) {
    const { app, handler, leases } = await holding(bench)
    await secondOnConnection(bench, { app, handler })
    await leases.comesTo(1, 'the first lease ends while the connection carries the next request')
    handler.answer()
    await leases.comesTo(0, 'the second lease ends')
  },

  async 'refunds units after the response, although the connection stays open'(bench) {
    const handler = new HeldHandler()
    const units = new CountedStore(bench, counted)
    const refundWhen = (_: object, { status }: { readonly status: number }) => status >= 500
    const limits = { ...counted, store: units.store, key: () => 'ada', refundWhen }
    const app = await bench.start([limits], handler.handle)
    await secondOnConnection(bench, { app, handler })
    await units.comesTo(1, 'units come back while the connection carries the next request')
    handler.answer()
  },

  async 'releases a lease after a handler error'(bench) {
    const leases = new CountedStore(bench, inFlight)
    const limits = { ...inFlight, store: leases.store, key: () => 'ada' }
    const app = await bench.start([limits], () => {
      throw new Error('broken')
    })
    for (let i = 0; i < 3; i += 1) {
      same((await app.ask()).status, 500, 'the response of the error handler')
      await leases.comesTo(0, 'the lease ends with the response')
    }
  },

  async 'settles a budget when the response ends or the client disconnects'(bench) {
    const handler = new HeldHandler()
    const reserved = { ...counted, reserve: true } as const
    const units = new CountedStore(bench, reserved)
    const limits = { ...reserved, store: units.store, key: () => 'ada', cost: 3 }
    const app = await bench.start([limits], handler.handle)
    const leaving = new AbortController()
    const left = app.ask({ signal: leaving.signal }).catch(() => 'left')
    await bench.until('the request reaches the handler', () => handler.held === 1)
    same((await app.ask()).status, 429, 'a request that does not fit the budget')
    leaving.abort()
    await units.comesTo(0, 'units come back when the client has left')
    handler.answer()
    same(await left, 'left', 'the client')
    const next = app.ask()
    await bench.until('the next request reaches the handler', () => handler.held === 1)
    await units.comesTo(3, 'the next request holds units')
    handler.answer()
    same((await next).headers['x-ratelimit-remaining'], '2', 'the remaining units')
    await units.comesTo(0, 'units come back with the response')
  },

  async 'refunds units depending on the response status'(bench) {
    const units = new CountedStore(bench, counted)
    const answers = [200, 500, 503, 200]
    const refundWhen = (_: object, { status }: { readonly status: number }) => status >= 500
    const limits = { ...counted, store: units.store, key: () => 'ada', refundWhen }
    const app = await bench.start([limits], () => answers.shift() ?? 200)
    for (const taken of [1, 1, 1, 2]) {
      await app.ask()
      await units.comesTo(taken, 'only responses below 500 are charged')
    }
  },

  async 'sees the status of a handler error'(bench) {
    const units = new CountedStore(bench, counted)
    const chargeWhen = (_: object, { status }: { readonly status: number }) => status < 500
    const limits = { ...counted, store: units.store, key: () => 'ada', chargeWhen }
    const app = await bench.start([limits], () => Promise.reject(new Error('broken')))
    for (let i = 0; i < 7; i += 1) {
      same((await app.ask()).status, 500, 'the response of the error handler')
      await units.comesTo(0, 'an error takes nothing')
    }
  },
}

/** An application with leases, whose requests stay open. */
async function holding(
  bench: AdapterBench,
): Promise<{ app: Asking; handler: HeldHandler; leases: CountedStore }> {
  const handler = new HeldHandler()
  const leases = new CountedStore(bench, inFlight)
  const limits = { ...inFlight, store: leases.store, key: () => 'ada' }
  return { app: await bench.start([limits], handler.handle), handler, leases }
}

/** Sends two requests over one connection: the first is answered with 503, the second is held. */
async function secondOnConnection(
  bench: AdapterBench,
  { app, handler }: { readonly app: Asking; readonly handler: HeldHandler },
): Promise<void> {
  const agent = bench.connection()
  const first = app.ask({ agent })
  await bench.until('the first request reaches the handler', () => handler.held === 1)
  handler.answer(503)
  same((await first).status, 503, 'the first request of the connection')
  // The test ends the connection, or the handler answers: either way nobody waits for it.
  app.ask({ agent }).catch(() => 'ended')
  await bench.until('the second request reaches the handler', () => handler.held === 1)
}
