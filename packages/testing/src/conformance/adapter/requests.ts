import { header, type MaybePromise, route } from '@sluice/http'
import { same } from '../assertions.ts'
import {
  type AdapterCase,
  type AdapterCases,
  type AdapterLimits,
  limitFields,
} from './adapter-bench.ts'

const from = '127.0.0.2'
const one = { limit: 1, window: '1m' } as const

/** An option function that fails, which either throws or rejects. */
const failing: Readonly<Record<string, () => MaybePromise<never>>> = {
  throws() {
    throw new Error('a mistake')
  },
  rejects: () => Promise.reject(new Error('a mistake')),
}

const inOptions: Readonly<Record<string, (fail: () => MaybePromise<never>) => AdapterLimits>> = {
  key: (key) => ({ ...one, key }),
  skip: (skip) => ({ ...one, skip }),
  cost: (cost) => ({ ...one, cost }),
  message: (message) => ({ limit: 0, window: '1m', message }),
}

const handsOn: AdapterCases = Object.fromEntries(
  Object.entries(inOptions).flatMap(([option, limits]) =>
    Object.entries(failing).map(([how, fail]): [string, AdapterCase] => [
      `hands on to the error handling when the function ${option} ${how}`,
      async (bench) => {
        const app = await bench.limited(limits(fail))
        const { status, body } = await app.ask()
        same([status, body], [500, 'a mistake'], 'the response of the error handler')
        same(bench.errors.length, 1, 'errors passed to the error handler')
        same(bench.reached, 0, 'requests that reached the handler')
      },
    ]),
  ),
)

/** Tests for the parts of a request that limits depend on. */
export const requests: AdapterCases = {
  async 'counts each client address separately'(bench) {
    const app = await bench.limited(one)
    same(await app.statuses(2), [200, 429], 'one address')
    same(await app.statuses(2, { from }), [200, 429], 'another address')
  },

  async 'does not trust an address in a header'(bench) {
    const app = await bench.limited(one)
    same(await app.statuses(1), [200], 'a first request')
    const proxies = ['x-forwarded-for', 'forwarded', 'x-real-ip']
    for (const name of [...proxies, 'cf-connecting-ip', 'true-client-ip']) {
      const value = name === 'forwarded' ? 'for=203.0.113.9' : '203.0.113.9'
      const statuses = await app.statuses(1, { headers: { [name]: value } })
      same(statuses, [429], `${name} makes no new client`)
    }
  },

  async 'reads headers in any case and with several lines'(bench) {
    const app = await bench.limited({ ...one, key: header('X-Client') })
    const asks = (name: string) => app.statuses(2, { headers: { 'x-CLIENT': name } })
    same(await asks('ada'), [200, 429], 'one client')
    same(await asks('bob'), [200, 429], 'another client')
    same(await asks('__proto__'), [200, 429], 'a client with an odd name')
  },

  async 'counts a POST with a body, and keeps the connection usable'(bench) {
    const app = await bench.limited(one)
    const agent = bench.connection()
    const post = { method: 'POST', body: JSON.stringify('x'.repeat(10_000)), agent }
    same(await app.statuses(3, post), [404, 429, 429], 'a POST to an unknown route')
    same(await app.statuses(1, { agent }), [429], 'a GET on the same connection')
  },

  async "matches a path's rule regardless of the query"(bench) {
    const app = await bench.limited({ routes: { '/nowhere': one } })
    same(await app.statuses(2, { path: '/elsewhere?a=1' }), [404, 404], 'a path without a rule')
    same(await app.statuses(1, { path: '/nowhere?a=1' }), [404], 'a path with a rule')
    same(await app.statuses(1, { path: '/nowhere?a=2' }), [429], 'its rule, with another query')
  },

  async 'treats all spellings of a path alike'(bench) {
    const app = await bench.limited({ routes: { '/nowhere': one } })
    same(await app.statuses(1, { path: '/nowhere' }), [404], 'a path with a rule')
    const [first] = await app.statuses(1, { path: '/NOWHERE' })
    for (const path of ['/nowhere/', '//nowhere', '/nowhere//']) {
      same(await app.statuses(1, { path }), [first], `${path}, if /NOWHERE is answered ${first}`)
    }
  },

  async 'counts by route pattern, never by path'(bench) {
    const app = await bench.limited({ ...one, key: route() })
    same(await app.statuses(1, { path: '/nowhere' }), [404], 'a path without a route')
    same(await app.statuses(1, { path: '/elsewhere' }), [429], 'another path without a route')
  },

  async 'counts by a key function, sync or async'(bench) {
    for (const key of [() => 'ada', async () => 'ada']) {
      const app = await bench.limited({ ...one, key })
      same(await app.statuses(1), [200], 'a first request')
      same(await app.statuses(1, { from }), [429], 'another address with the same key')
    }
  },

  async 'falls back to the address if a function finds no key'(bench) {
    const app = await bench.limited({ ...one, key: () => undefined })
    same(await app.statuses(2), [200, 429], 'one address')
    same(await app.statuses(1, { from }), [200], 'another address')
  },

  async "refuses a request without a key if onMissingKey is 'deny'"(bench) {
    const app = await bench.limited({ ...one, key: () => undefined, onMissingKey: 'deny' })
    const answer = await app.ask()
    same(answer.status, 429, 'the status')
    same(limitFields(answer), {}, 'the header fields')
  },

  async 'sends no headers for skipped requests and does not count them, sync or async'(bench) {
    for (const how of [(skips: boolean) => skips, async (skips: boolean) => skips]) {
      let skips = true
      const app = await bench.limited({ ...one, skip: () => how(skips) })
      same(await app.statuses(3), [200, 200, 200], 'skipped requests')
      same(limitFields(await app.ask()), {}, 'the fields of a skipped request')
      skips = false
      same(await app.statuses(2), [200, 429], 'requests that are not skipped')
    }
  },

  async 'takes the cost from a function, sync or async'(bench) {
    for (const cost of [() => 4, async () => 4]) {
      const app = await bench.limited({ limit: 10, window: '1m', cost })
      same((await app.ask()).headers['x-ratelimit-remaining'], '6', 'a cost of 4')
      same(await app.statuses(2), [200, 429], 'a cost of 4 does not fit into 2')
    }
  },

  async 'takes the limit from a function, sync or async'(bench) {
    for (const limit of [() => 2, async () => 2]) {
      const app = await bench.limited({ limit, defaultLimit: 9, window: '1m' })
      same(await app.statuses(3), [200, 200, 429], 'a limit of 2')
    }
  },

  ...handsOn,
}
