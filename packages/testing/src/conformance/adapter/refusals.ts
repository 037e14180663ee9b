import { memoryStore, type Store } from '@sluice/core'
import { same } from '../assertions.ts'
import {
  type AdapterBench,
  type AdapterCase,
  type AdapterCases,
  type AdapterLimits,
  type Answer,
  limitFields,
} from './adapter-bench.ts'

const one = { limit: 1, window: '30s', algorithm: 'fixed-window' } as const
const quotaExceeded =
  '{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded",' +
  '"status":429,"violated-policies":["default"]}'

async function refused(bench: AdapterBench, limits: AdapterLimits): Promise<Answer> {
  const app = await bench.limited(limits)
  await app.ask()
  return app.ask()
}

type OwnMessage = NonNullable<AdapterLimits['message']>

const messages: readonly (readonly [string, OwnMessage, string, string])[] = [
  ['a text', 'Slow down', 'text/plain; charset=utf-8', 'Slow down'],
  ['an object', { error: 'slow' }, 'application/json', '{"error":"slow"}'],
  ['a function', () => 'Wait', 'text/plain; charset=utf-8', 'Wait'],
  ['an async function', async () => ({ wait: 1 }), 'application/json', '{"wait":1}'],
]

function sendsMessage(message: OwnMessage, type: string, body: string): AdapterCase {
  return async (bench) => {
    const answer = await refused(bench, { ...one, message })
    same(answer.status, 429, 'the status')
    same(answer.headers['content-type'], type, 'Content-Type')
    same(answer.body, body, 'the body')
    same(answer.headers['retry-after'], '30', 'Retry-After')
    same(answer.headers['cache-control'], 'no-store', 'Cache-Control')
  }
}

function refusesHead(own: Pick<AdapterLimits, 'message'>): AdapterCase {
  return async (bench) => {
    const app = await bench.limited({ ...one, ...own })
    await app.ask()
    const got = await app.ask()
    const head = await app.ask({ method: 'HEAD' })
    same([head.status, head.body], [429, ''], 'a refused HEAD')
    same(head.headers['content-length'], String(Buffer.byteLength(got.body)), 'Content-Length')
    // The second may change between the two.
    const date = got.headers.date
    same({ ...head.headers, date }, { ...got.headers, date }, 'the fields of HEAD and GET')
  }
}

/** Tests for statuses, fields and bodies of refused requests. */
export const refusals: AdapterCases = {
  async 'refuses the sixth of five requests per window, with an uncacheable problem'(bench) {
    const app = await bench.limited({ limit: 5, window: '30s', algorithm: 'fixed-window' })
    same(await app.statuses(5), [200, 200, 200, 200, 200], 'five requests')
    const answer = await app.ask({ headers: { accept: '*/*' } })
    same(answer.status, 429, 'the status of the sixth')
    same(answer.headers['content-type'], 'application/problem+json', 'Content-Type')
    same(answer.headers['cache-control'], 'no-store', 'Cache-Control')
    same(answer.body, quotaExceeded, 'the body')
    same(
      limitFields(answer),
      {
        'ratelimit-policy': '"default";q=5;w=30',
        ratelimit: '"default";r=0;t=30',
        'x-ratelimit-limit': '5',
        'x-ratelimit-remaining': '0',
        'x-ratelimit-reset': '1795195831',
        'retry-after': '30',
      },
      'the header fields',
    )
    same(bench.reached, 5, 'requests that reached the handler')
  },

  async 'lists all policies that deny'(bench) {
    const answer = await refused(bench, {
      policies: [
        { name: 'burst', limit: 1, window: '1s' },
        { name: 'unhurt', limit: 9, window: '1m' },
        { name: 'daily', limit: 1, window: '1d' },
      ],
    })
    const named: unknown = JSON.parse(answer.body)['violated-policies']
    same(named, ['burst', 'daily'], 'violated-policies of the body')
    same(answer.headers['retry-after'], '86400', 'Retry-After is the longest wait')
  },

  'refuses HEAD with all that GET has, but the body: a problem': refusesHead({}),
  'refuses HEAD with all that GET has, but the body: a message': refusesHead({ message: 'Näh' }),
  'refuses HEAD with all that GET has, but the body: an object': refusesHead({
    message: { error: 'slow down' },
  }),

  async 'shows only Retry-After for a hidden policy'(bench) {
    const answer = await refused(bench, { ...one, hidden: true })
    same(answer.body, '{"type":"about:blank","title":"Too Many Requests","status":429}', 'the body')
    same(limitFields(answer), { 'retry-after': '30' }, 'the header fields')
  },

  async 'sends only Retry-After when headers are disabled'(bench) {
    const answer = await refused(bench, { ...one, name: 'login', headers: [] })
    same(limitFields(answer), { 'retry-after': '30' }, 'the header fields')
    same(answer.body, '{"type":"about:blank","title":"Too Many Requests","status":429}', 'the body')
  },

  async 'sends no Retry-After with limit 0'(bench) {
    const answer = await (await bench.limited({ limit: 0, window: '1m' })).ask()
    same(answer.status, 429, 'the status')
    same(answer.headers['retry-after'], undefined, 'Retry-After')
    same(answer.headers.ratelimit, '"default";r=0', 'RateLimit')
  },

  ...Object.fromEntries(
    messages.map(([kind, message, type, body]) => [
      `sends a message that is ${kind}, with the headers of a refusal`,
      sendsMessage(message, type, body),
    ]),
  ),

  async 'refuses with the configured status'(bench) {
    const answer = await refused(bench, { ...one, statusCode: 503 })
    same(answer.status, 503, 'the status')
    same(JSON.parse(answer.body).status, 503, 'the status in the body')
    same(answer.headers['retry-after'], '30', 'Retry-After')
  },

  async 'does not charge refused requests'(bench) {
    const app = await bench.limited({ limit: 2, window: '1m', store: memoryStore() })
    await app.statuses(50)
    bench.clock.advance('1m')
    same(await app.statuses(3), [200, 200, 429], 'a window later')
  },
}

/** A failing store, which either throws or rejects. */
const failing: Readonly<Record<string, Store>> = {
  throws: { apply: refuse, change: refuse },
  rejects: { apply: async () => refuse(), change: async () => refuse() },
}

function refuse(): never {
  throw new Error('connection refused')
}

/** Tests for responses while the store is unavailable. */
export const storeFailures: AdapterCases = Object.fromEntries(
  Object.entries(failing).flatMap(([how, store]): [string, AdapterCase][] => [
    [
      `'open' passes without headers when the store ${how}`,
      async (bench) => {
        const limits = { limit: 1, window: '1m', store, failureMode: 'open' } as const
        const app = await bench.limited({ ...limits, exposeHeaders: true })
        const answer = await app.ask()
        same(answer.status, 200, 'the status')
        same(limitFields(answer), {}, 'the header fields')
        same(await app.statuses(3), [200, 200, 200], 'every request passes')
      },
    ],
    [
      `'closed' refuses with 503 when the store ${how}`,
      async (bench) => {
        const limits = { limit: 1, window: '1m', store, failureMode: 'closed' } as const
        const app = await bench.limited({ ...limits, statusCode: 420, message: 'You did too much' })
        const answer = await app.ask()
        same(answer.status, 503, 'the status')
        same(limitFields(answer), { 'retry-after': '5' }, 'the header fields')
        same(answer.headers['cache-control'], 'no-store', 'Cache-Control')
        same(answer.headers['content-type'], 'application/problem+json', 'Content-Type')
        const problem = '{"type":"about:blank","title":"Service Unavailable","status":503}'
        same(answer.body, problem, 'the body')
      },
    ],
    [
      `'fallback' limits in local memory when the store ${how}`,
      async (bench) => {
        const app = await bench.limited({ limit: 2, window: '1m', store })
        same((await app.ask()).headers.ratelimit, '"default";r=1;t=60', 'RateLimit')
        same(await app.statuses(2), [200, 429], 'the limit holds')
        same((await app.ask()).headers['retry-after'], '60', 'Retry-After')
      },
    ],
  ]),
)
