import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createFetch } from '@sluice/client'
import type { Store, user } from '@sluice/express'
import type { Metrics } from '@sluice/metrics'
import { createOutbound } from '@sluice/outbound'
import { createAdmission, createQueue, createWorker, memoryBroker } from '@sluice/queue'
import type { RequestHandler } from 'express'

interface Setting {
  readonly store: Store
  readonly metrics: Metrics
  /** The URL of the third party. */
  readonly vendor: string
}

/** Calls the vendor, but never more often than allowed. */
export function exchangeRates({ store, metrics, vendor }: Setting): RequestHandler {
  const outbound = createOutbound({
    ...{ name: 'vendor', limits: [{ limit: 4, window: '1s' }], store, observers: [metrics] },
    // Short, so that the example shows refused calls.
    ...{ maxWait: '500ms', recovery: '2s' },
  })
  return async (_request, response) => {
    const answer = await outbound.fetch(`${vendor}/rates`).catch(() => undefined)
    response.sendStatus(answer?.ok ? 200 : 503)
  }
}

/** Excess reports wait in a queue. A worker creates each, and sends it by mail. */
export function reportQueue({
  store,
  metrics,
  vendor,
  key,
}: Setting & { readonly key: ReturnType<typeof user> }) {
  const broker = memoryBroker({ name: 'reports' })
  const queue = createQueue({ broker, identity: key, maxDepth: 50, observers: [metrics] })
  const fetch = createFetch({ observers: [metrics], retries: 1, maxWaitMs: 2_000 })
  createWorker({
    ...{ broker, store, limit: 5, window: '1s', concurrency: 5, attempts: 1 },
    observers: [metrics],
    async handler() {
      const answer = await fetch(`${vendor}/mail`)
      if (!answer.ok) throw new Error('the mail was refused')
    },
  })
  return { queue, admission: createAdmission({ queue, monitor: '/jobs' }) }
}

/** Requests that the third party refuses now and then, with the seconds after which to retry. */
const refusals = [
  { path: '/rates', each: 20, retryAfter: 1 },
  { path: '/mail', each: 3, retryAfter: 1 },
  { path: '/mail', each: 5, retryAfter: 3 },
]

/** A third party that knows exchange rates and sends mail. Resolves to its URL. */
export async function startVendor(): Promise<string> {
  const asked = new Map<string | undefined, number>()
  const server = createServer((request, response) => {
    const count = (asked.get(request.url) ?? 0) + 1
    asked.set(request.url, count)
    const found = refusals.find(({ path, each }) => request.url === path && count % each === 0)
    response.writeHead(found ? 429 : 200, found && { 'Retry-After': String(found.retryAfter) })
    response.end()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return `http://127.0.0.1:${port}`
}
