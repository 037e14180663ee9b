// One process of a fleet: an API whose limiters count in Redis. It is told what to do by messages of its parent, and tells what happens.
import type { IncomingMessage } from 'node:http'
import { createLimiter, type ResilienceEvent, type Store } from '@sluice/core'
import { apiKey } from '@sluice/http'
import { redisStore } from '@sluice/redis'
import { answerParent, leaveParent, tellParent } from '../support/child.ts'
import { clusterClients, sentinelClients, singleClients } from '../support/redis-clients.ts'
import type { ApiProtocol, ApiSettings, ApiTold, RequestTimes } from './api-messages.ts'
import { type ApiWatch, startApi } from './api-servers.ts'
import type { SteppedClock } from './fault.ts'
import { hotKey } from './load.ts'
import { monotonicMs, watchLoop } from './timing.ts'

/** More often than by default, so that a fleet has counted itself before a fault begins. */
const HEARTBEAT_MS = 1_000

/** The store is there again, only a busy machine may be slow. */
const REPORT_DEADLINE_MS = 20_000

const settings = JSON.parse(process.argv[2] ?? '{}') as ApiSettings
const requests: RequestTimes[] = []
const key = apiKey({ verify: false })
const { delays: loop } = watchLoop()

const tell = (told: ApiTold) => tellParent(told)
process.on('unhandledRejection', (reason) => tell({ type: 'unhandled', message: String(reason) }))
process.on('uncaughtException', (error) => tell({ type: 'unhandled', message: String(error) }))

const realNow = Date.now
const steps: Record<SteppedClock, number> = { ours: 0, store: 0 }
Date.now = () => realNow() + steps.ours

const client = connectRedis(settings)
// What comes of errors of the connection is what this is about.
client.connect().catch(() => undefined)
const store: Store = redisStore(client.client, {
  prefix: settings.prefix,
  heartbeatMs: HEARTBEAT_MS,
  ...(settings.ownClock ? { clock: () => realNow() + steps.store } : {}),
})
// Limiters of one store share what they know of it.
const total = createLimiter({
  store,
  policies: settings.policies.filter(({ name }) => name === 'total'),
  deadlineMs: REPORT_DEADLINE_MS,
})
const api = await startApi(settings.framework, settings.modes.map(routeOf), watchRequests())
answerParent<ApiProtocol>({
  listen: () => api.port,
  'step-clock'({ clock, byMs }) {
    steps[clock] += byMs
    return undefined
  },
  async report() {
    const { keysOwed } = total.storeHealth()
    return { requests, loop, keysOwed, chargedInAll: await knownToStore() }
  },
  async close() {
    await api.close()
    await store.close?.()
    void client.close()
    // From here on nothing of ours may keep the process alive; it is not asked to exit.
    leaveParent()
    return undefined
  },
})

/** The libraries as they are by default: both queue commands while they are not connected, and have no timeout for them. */
function connectRedis({ framework, connection }: ApiSettings) {
  const library = framework === 'express' ? 'ioredis 6' : 'node-redis 6'
  const made = {
    single: (port = 0) => singleClients[library]?.(port),
    cluster: () => clusterClients[library]?.(connection.ports),
    sentinel: () => sentinelClients[library]?.(connection.ports, connection.name ?? ''),
  }[connection.kind](connection.ports[0])
  if (!made) throw new Error(`no client of ${framework} for ${connection.kind}`)
  return made
}

/** Peeks, because the headers of an answer tell of the fallback's counts when the store is late. */
async function knownToStore(): Promise<number | undefined> {
  const { source, outcomes } = await total.peek(key.keyOf(hotKey('fallback')))
  const { limit = 0, remaining } = outcomes[0] ?? {}
  return source === 'store' && remaining !== undefined ? limit - remaining : undefined
}

function routeOf(mode: ApiSettings['modes'][number], index: number) {
  const { policies, deadlineMs, instances } = settings
  return {
    mode,
    limits: {
      store,
      key,
      policies,
      failureMode: mode,
      deadlineMs,
      ...(instances === undefined ? {} : { instances }),
      observers: {
        onStoreError: ({ error }: { error: { code: string } }) =>
          tell({ type: 'store-error', at: monotonicMs(), code: error.code }),
        // The limiters share the store, and so its events.
        ...(index === 0 && {
          onResilience: (event: ResilienceEvent) =>
            tell({ type: 'event', at: monotonicMs(), event }),
        }),
      },
    },
  }
}

function watchRequests(): ApiWatch {
  const asked = new WeakMap<IncomingMessage, number>()
  const passed = new WeakMap<IncomingMessage, number>()
  return {
    requestsOf(server) {
      server.prependListener('request', (request, response) => {
        const id = Number(request.headers['x-request-id'])
        const arrivedAt = monotonicMs()
        response.once('prefinish', () => {
          const repliedAt = monotonicMs()
          // Who was not let pass was refused by the limiter itself.
          const decidedAt = passed.get(request) ?? repliedAt
          requests.push([id, arrivedAt, asked.get(request) ?? arrivedAt, decidedAt, repliedAt])
        })
      })
    },
    asks: (request) => void asked.set(request, monotonicMs()),
    passes: (request) => void passed.set(request, monotonicMs()),
  }
}
