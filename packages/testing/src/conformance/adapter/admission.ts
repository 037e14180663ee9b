import { unlimited } from '@sluice/core'
import { same } from '../assertions.ts'
import { type AdapterCases, limitFields } from './adapter-bench.ts'

const statusOfHandler: AdapterCases = Object.fromEntries(
  [304, 206, 404, 500].map((status) => [
    `sends the same fields with status ${status}`,
    async (bench) => {
      const app = await bench.start([{ limit: 3, window: '1m' }], () => status)
      const answer = await app.ask()
      same(answer.status, status, "the handler's status is sent")
      same(answer.headers.ratelimit, '"default";r=2;t=60', 'RateLimit')
      same(answer.headers['retry-after'], undefined, 'an admitted request has no Retry-After')
    },
  ]),
)

/** Tests for requests that pass, and their fields. */
export const admission: AdapterCases = {
  async 'sends exact headers with the first response'(bench) {
    const app = await bench.limited({ limit: 100, window: '1m', algorithm: 'fixed-window' })
    const answer = await app.ask()
    same([answer.status, answer.body], [200, 'hello'], "the handler's response")
    same(
      limitFields(answer),
      {
        'ratelimit-policy': '"default";q=100;w=60',
        ratelimit: '"default";r=99;t=60',
        'x-ratelimit-limit': '100',
        'x-ratelimit-remaining': '99',
        'x-ratelimit-reset': '1795195861',
      },
      'the header fields',
    )
  },

  async 'admits a request after Retry-After, but not a millisecond earlier'(bench) {
    const app = await bench.limited({ limit: 1, window: 1500 })
    same(await app.statuses(2), [200, 429], 'a limit of 1')
    bench.clock.advance(1499)
    same(await app.statuses(1), [429], 'a millisecond before the wait is over')
    bench.clock.advance(1)
    same(await app.statuses(1), [200], 'when the wait is over')
  },

  async 'counts HEAD and GET together'(bench) {
    const app = await bench.limited({ limit: 2, window: '1m' })
    same(await app.statuses(1, { method: 'HEAD' }), [200], 'HEAD')
    same(await app.statuses(2), [200, 429], 'GET after HEAD')
  },

  async "counts preflights, unless preflights is 'pass'"(bench) {
    const origin = 'https://a.example'
    const headers = { origin, 'access-control-request-method': 'GET' }
    const counting = await bench.limited({ limit: 1, window: '1m' })
    await counting.ask({ method: 'OPTIONS', headers })
    same(await counting.statuses(1, { method: 'OPTIONS', headers }), [429], 'a second preflight')
    same(await counting.statuses(1), [429], 'a request after preflights')
    const passing = await bench.limited({ limit: 1, window: '1m', preflights: 'pass' })
    for (let i = 0; i < 3; i += 1) {
      const answer = await passing.ask({ method: 'OPTIONS', headers })
      same(answer.status === 429, false, 'a preflight that passes is never refused')
      same(limitFields(answer), {}, 'the fields of a preflight that passes')
    }
    same(await passing.statuses(1), [200], 'preflights that pass take nothing')
    const statuses = await passing.statuses(1, { method: 'OPTIONS', headers: { origin } })
    same(statuses, [429], 'an OPTIONS request that is no preflight')
  },

  ...statusOfHandler,

  async 'limits unknown paths too'(bench) {
    const app = await bench.limited({ limit: 2, window: '1m' })
    same(await app.statuses(1, { path: '/nowhere' }), [404], 'an unknown path')
    same(await app.statuses(2, { path: '/elsewhere' }), [404, 429], 'another unknown path')
  },

  async 'decides several policies together, and charges none if one denies'(bench) {
    const app = await bench.limited({
      policies: [
        { name: 'burst', limit: 1, window: '1s', algorithm: 'fixed-window' },
        { name: 'sustained', limit: 10, window: '1m', algorithm: 'fixed-window' },
      ],
    })
    same(await app.statuses(3), [200, 429, 429], 'a burst of 1')
    bench.clock.advance(1000)
    const { headers } = await app.ask()
    same(
      headers['ratelimit-policy'],
      '"burst";q=1;w=1, "sustained";q=10;w=60',
      'RateLimit-Policy of two policies',
    )
    same(headers.ratelimit, '"burst";r=0;t=1, "sustained";r=8;t=59', 'RateLimit of two policies')
    same(headers['x-ratelimit-limit'], '1', 'X-RateLimit-Limit is that of the tightest policy')
  },

  async 'runs two limiters in order, and merges their headers'(bench) {
    const app = await bench.limited(
      { name: 'first', limit: 9, window: '1m', algorithm: 'fixed-window' },
      { name: 'second', limit: 1, window: '30s', algorithm: 'fixed-window' },
    )
    same(
      limitFields(await app.ask()).ratelimit,
      '"first";r=8;t=60, "second";r=0;t=30',
      'RateLimit of two limiters',
    )
    const refused = await app.ask()
    same(refused.status, 429, 'the second limiter refuses')
    same(
      refused.headers.ratelimit,
      '"first";r=7;t=60, "second";r=0;t=30',
      'RateLimit of a refusal by the second limiter',
    )
    same(refused.headers['retry-after'], '30', 'Retry-After of the second limiter')
  },

  async 'sends no headers for an unlimited policy'(bench) {
    const app = await bench.limited({ limit: unlimited, window: '1m' })
    same(limitFields(await app.ask()), {}, 'the fields of an unlimited policy')
    same(await app.statuses(20), Array(20).fill(200), 'an unlimited policy')
  },

  async 'admits exactly the limit of 200 concurrent requests'(bench) {
    const app = await bench.limited({ limit: 25, window: '1m' })
    const answers = await Promise.all(Array.from({ length: 200 }, () => app.ask()))
    const passed = answers.filter(({ status }) => status === 200)
    const refused = answers.filter(({ status }) => status === 429)
    same([passed.length, refused.length], [25, 175], 'requests that pass, and that are refused')
    const left = passed.map(({ headers }) => Number(headers['x-ratelimit-remaining']))
    const each = Array.from({ length: 25 }, (_, index) => 24 - index)
    same(
      left.sort((a, b) => b - a),
      each,
      'each request sees its remaining units',
    )
  },

  async 'admits requests in shadow mode without headers'(bench) {
    const app = await bench.limited({ limit: 1, window: '1m', mode: 'shadow' })
    same(await app.statuses(3), [200, 200, 200], 'a policy in shadow refuses nobody')
    same(limitFields(await app.ask()), {}, 'the fields of a policy in shadow')
  },

  async 'delays a request until its turn, and refuses one without room'(bench) {
    const app = await bench.limited({
      algorithm: 'leaky-bucket',
      limit: 1,
      window: '50ms',
      queue: 1,
    })
    const statuses = (await Promise.all([app.ask(), app.ask(), app.ask()])).map(
      ({ status }) => status,
    )
    same(statuses.sort(), [200, 200, 429], 'one passes at once, one is held, one has no room')
  },
}
