import { runInNewContext } from 'node:vm'
import { createFetch, waitFor } from '@sluice/client'
import { createLimiter, memoryStore, regionalStore } from '@sluice/core'
import { rateLimit } from '@sluice/express'
import { rateLimitPlugin } from '@sluice/fastify'
import { adaptive, apiKey, bearer, cpu, ip, schedule, tiers } from '@sluice/http'
import { auditStream, createOutbound } from '@sluice/outbound'
import {
  bullmqBroker,
  createAdmission,
  createQueue,
  createWorker,
  memoryBroker,
  statusMonitor,
} from '@sluice/queue'
import { redisStore } from '@sluice/redis'
import fastify from 'fastify'
import { describe, expect, it } from 'vitest'

class Settings {
  limit = 5
}

/** Objects that say something to their author, and have no field that an option could be read from. */
const nonsense: readonly (readonly [kind: string, value: () => object])[] = [
  ['Map', () => new Map([['POST /login', { limit: 1, window: '1m' }]])],
  ['Set', () => new Set(['10.0.0.0/8'])],
  ['Promise', () => Promise.resolve({ ips: ['10.0.0.0/8'] })],
  ['Date', () => new Date(0)],
  ['RegExp', () => /x/],
  ['Number', () => Object(5)],
  ['String', () => Object('')],
  ['Boolean', () => Object(true)],
  ['Settings', () => new Settings()],
  ['URL', () => new URL('http://localhost')],
  ['an array', () => []],
  ['an object', () => Object.create({ limit: 5, window: '1m' })],
]

const good = { limit: 5, window: '1m' } as const
const queue = createQueue({ broker: memoryBroker(), identity: ip() })
/** Beyond the types, as a user without them could. */
const any = (value: object): never => value as never

/** Options of a guard that are objects themselves. */
const within = ['routes', 'profiles', 'allow', 'block', 'shed', 'penalty']
const makers = {
  ...{ createLimiter, memoryStore, regionalStore, rateLimit, schedule, adaptive, cpu, ip, apiKey },
  ...{ bearer, createQueue, memoryBroker, bullmqBroker, createWorker, createAdmission },
  ...{ statusMonitor, createOutbound, auditStream, createFetch },
}

/** Everything that takes options, or a table, by what the message calls it. */
const takers: readonly (readonly [option: string, take: (value: object) => unknown])[] = [
  ...Object.entries(makers).map(
    ([name, make]) => [name, (value: object) => Reflect.apply(make, undefined, [value])] as const,
  ),
  ...within.map(
    (name) => [name, (value: object) => rateLimit(any({ ...good, [name]: value }))] as const,
  ),
  ['policies[0]', (value) => createLimiter({ policies: [any(value)] })],
  ['penalty', (value) => createLimiter({ ...good, penalty: any(value) })],
  ['enforce', (value) => createLimiter({ ...good, enforce: any(value) })],
  ['redisStore', (value) => redisStore({ send: () => 0 } as never, any(value))],
  ['policies[0]', (value) => rateLimit({ policies: [any(value)] })],
  ["routes['/x']", (value) => rateLimit({ ...good, routes: { '/x': any(value) } })],
  ['profiles', (value) => rateLimit({ ...good, profiles: { x: any(value) } })],
  ['tiers', (value) => tiers(any(value), () => 'x')],
  ['idempotency', (value) => createAdmission({ queue, monitor: '/jobs', idempotency: any(value) })],
  ['poll', (value) => statusMonitor({ queue, poll: any(value) })],
]

describe.each(takers)('%s rejects anything but plain objects', (option, take) => {
  it.each(nonsense)('%s', (_kind, value) => {
    expect(() => take(value())).toThrow(option)
  })
})

describe('options', () => {
  it('are refused by a plugin of Fastify, by waitFor and by consume too', async () => {
    for (const [, value] of nonsense) {
      const ready = fastify().register(rateLimitPlugin, any(value())).ready()
      await expect(ready).rejects.toThrow(/rateLimitPlugin must be a plain object/)
      await expect(waitFor(new Response(), any(value()))).rejects.toThrow(/waitFor/)
      await expect(createLimiter(good).consume('ada', any(value()))).rejects.toThrow(/options/)
    }
  })

  it('are described by their class name', () => {
    const message = /^routes must be a plain object.*, but is a Map$/
    expect(() => rateLimit({ ...good, routes: any(new Map()) })).toThrow(message)
  })

  it('may be without a prototype, or of another realm', () => {
    const foreign = runInNewContext(`({ limit: 5, window: '1m' })`)
    for (const options of [Object.assign(Object.create(null), good), foreign]) {
      expect(createLimiter(options).policies[0]?.limit).toBe(5)
      expect(() => rateLimit({ ...good, routes: { '/x': options }, profiles: {} })).not.toThrow()
    }
    expect(() => createFetch(runInNewContext('({})'))).not.toThrow()
  })

  it.each(['constructor', 'toString', '__proto__', 'hasOwnProperty', 'valueOf'])(
    'with the unknown name %s are rejected, without suggesting inherited names',
    (name) => {
      const options = JSON.parse(`{ "limit": 5, "window": "1m", "${name}": 1 }`)
      const message = `^createLimiter: there is no option '${name}'; (all options are listed|the closest are '(?!${name}'))`
      expect(() => createLimiter(options)).toThrow(new RegExp(message))
    },
  )
})
