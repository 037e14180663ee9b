import { createLimiter, memoryStore } from '@sluice/core'
import { parseHeaders } from '@sluice/headers'
import { type GuardFields, ipKey, route } from '@sluice/http'
import { continueWith, setFields } from '@sluice/http/adapter'
import fc from 'fast-check'
import { parseList } from 'structured-headers'
import { describe, expect, it, vi } from 'vitest'
import { raise } from '../support/raise.ts'
import { exchange, guardOf, now } from './exchange.ts'

const good = { limit: 5, window: '1m' } as const

describe('a guard', () => {
  it('takes a different cost for each policy', () => {
    const costs = [{ cost: 1 }, { cost: () => 3 }, {}]
    const policies = costs.map((own, index) => ({ ...good, name: `p${index}`, ...own }))
    const { decision } = now(guardOf({ cost: 2, policies }).check(exchange()))
    expect(decision?.outcomes.map(({ remaining }) => remaining)).toEqual([4, 2, 3])
  })

  it('runs in order: skip, keys, costs, limits; and nothing after a skip', async () => {
    const asked: string[] = []
    const note =
      <T>(what: string, value: T) =>
      async () => {
        asked.push(what)
        return value
      }
    const policies = ['a', 'b'].map((name) => ({
      ...{ ...good, name, key: note(`key ${name}`, 'ada'), cost: note(`cost ${name}`, 1) },
      ...{ limit: note(`limit ${name}`, 5), defaultLimit: 5 },
    }))
    await guardOf({ skip: note('skip', false), policies }).check(exchange())

    const order = ['skip', 'key a', 'key b', 'cost a', 'cost b', 'limit a', 'limit b']
    expect(asked).toEqual(order)
    await guardOf({ skip: note('skip again', true), policies }).check(exchange())
    expect(asked).toEqual([...order, 'skip again'])
  })

  it('leaves no rejection unhandled when two functions fail', async () => {
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    const fail = (how: string) => async () => raise(how)
    const policies = [
      { ...good, name: 'a', key: fail('first'), cost: fail('third') },
      { ...good, name: 'b', key: () => raise('second') },
    ]

    await expect(guardOf({ policies }).check(exchange())).rejects.toThrow('first')
    await new Promise((resolve) => setImmediate(resolve))

    expect(unhandled).not.toHaveBeenCalled()
    process.off('unhandledRejection', unhandled)
  })

  it('counts all requests without an address in one bucket', () => {
    const guard = guardOf({ ...good, limit: 1 })
    const keys = [undefined, 'not an address'].map(
      (ip) => now(guard.check(exchange({ ip }))).decision?.key,
    )
    expect(keys).toEqual(['@ip/invalid', '@ip/invalid'])
  })

  it('counts a private policy for each place and guard, and a named one once on a store', async () => {
    const store = memoryStore()
    const places = ['', 'GET /x', 'GET /y', 'POST /x']
    const left = (limits: object) => {
      const guard = guardOf({ ...good, store, ...limits })
      return places.map((place) => now(guard.check(exchange({}, place))).decision?.remaining)
    }
    expect([left({}), left({})].flat()).toEqual(Array(8).fill(4))
    expect(left({ name: 'api' })).toEqual([4, 3, 2, 1])
    const limiter = createLimiter({ ...good, name: 'api', store })
    expect((await limiter.consume(ipKey('203.0.113.9'))).remaining).toBe(0)
    expect(left({ name: 'api' })).toEqual([0, 0, 0, 0])
  })

  it.each<[string, GuardFields<object>]>([
    ['with a rule for the route', { routes: { 'GET /users/:id': good } }],
    ['before the route is known', {}],
  ])('takes 10,000 ids in a path for one key %s', (_, more) => {
    const store = memoryStore()
    const apply = vi.spyOn(store, 'apply')
    const guard = guardOf({ ...good, key: route(), store, ...more })
    const ask = (_: unknown, index: number) =>
      now(guard.check(exchange({ path: `/users/${index}-${Math.random()}` }))).verdict.action
    const passed = Array.from({ length: 10_000 }, ask).filter((action) => action === 'pass')

    expect(passed).toHaveLength(5)
    expect(new Set(apply.mock.calls.map(([, checks]) => checks[0]?.key)).size).toBe(1)
  })

  it.each([Number.NaN, Number.POSITIVE_INFINITY, -1, 0.5, '5', undefined, 2 ** 53])(
    'is not opened by %s as a cost or a limit, and reports it',
    (bad) => {
      const onInvalid = vi.fn()
      const asked = (limits: object) => {
        onInvalid.mockClear()
        const guard = guardOf({ ...limits, window: '1m', observers: { onInvalid } })
        return [1, 2, 3].map(() => now(guard.check(exchange())).verdict.action)
      }
      const reports = (kind: string, text: string) =>
        Array(3).fill([{ code: `SLUICE_${kind}_INVALID`, message: expect.stringContaining(text) }])

      expect(asked({ limit: 2, cost: () => bad })).toEqual(['pass', 'pass', 'reject'])
      expect(onInvalid.mock.calls).toEqual(reports('COST', '1 was used'))
      expect(asked({ limit: () => bad, defaultLimit: 2 })).toEqual(['pass', 'pass', 'reject'])
      expect(onInvalid.mock.calls).toEqual(reports('LIMIT', 'defaultLimit (2) was used'))
      for (const wrong of bad === undefined ? [] : [{ limit: 2, cost: bad }, { limit: bad }]) {
        expect(() => asked(wrong)).toThrow(/must be a whole number/)
      }
    },
  )

  it('gives private policies of all scopes distinct names that are valid in headers', () => {
    const guard = guardOf({ ...good, limit: 1_000_000, headers: ['draft-11'] })
    const names = new Map<string, string>()
    const alike = ['GET /a/b', 'GET /a-b', 'GET /a/:b', 'GET /A/b', '/a/b', 'GET /é', 'GET /è']
    const text = fc.string({ minLength: 1, unit: 'grapheme', maxLength: 200 })
    const law = fc.property(fc.oneof(fc.constantFrom(...alike), text), (place) => {
      const { fields, ...rest } = exchange({}, place)
      setFields(rest.response, now(guard.check(rest)).verdict.fields)
      const { name = '' } = parseHeaders(Object.fromEntries(fields)).policies[0] ?? {}
      expect(name).toMatch(/^default-?[A-Za-z0-9._-]{0,56}$/)
      expect(parseList(fields.get('RateLimit') ?? '')).toHaveLength(1)
      expect(names.get(name) ?? place).toBe(place)
      names.set(name, place)
    })
    fc.assert(law, { numRuns: 300 })
  })

  it('merges existing response headers into lists that parse', () => {
    const guard = guardOf({ ...good, limit: 1_000_000, headers: ['draft-11'] })
    const more = fc.constantFrom(';r=1', ';q=1', ';r=1;t=', '')
    const item = fc
      .tuple(fc.string({ maxLength: 8 }), fc.nat(99), more)
      .map(([name, n, rest]) => `"${name}";r=${n};q=${n}${rest}`)
    const items = fc.array(item, { maxLength: 4 }).map((all) => all.join())
    const field = fc.oneof(fc.string(), item, items)
    const law = fc.property(field, field, (state, policy) => {
      const { fields, ...rest } = exchange()
      fields.set('RateLimit', state)
      fields.set('RateLimit-Policy', policy)
      setFields(rest.response, now(guard.check(rest)).verdict.fields)
      for (const name of ['RateLimit', 'RateLimit-Policy']) {
        const names = parseList(fields.get(name) ?? '').map(([value]) => value)
        expect(names).toContain('default')
        expect(new Set(names).size).toBe(names.length)
      }
    })
    fc.assert(law, { numRuns: 500 })
  })

  it('merges headers that others add between two guards', () => {
    const { fields, ...rest } = exchange()
    const [one, two] = [guardOf(good), guardOf({ ...good, name: 'b' })]
    setFields(rest.response, now(one.check(rest)).verdict.fields)
    fields.set('RateLimit', `${fields.get('RateLimit')}, "theirs";r=1;t=1`)
    setFields(rest.response, now(two.check(rest)).verdict.fields)
    expect(fields.get('RateLimit')).toBe('"theirs";r=1;t=1, "default";r=4;t=60, "b";r=4;t=60')
  })
})

/** The fields of a response after several guards, one after the other, and what stood there before. */
function chained(limits: readonly GuardFields<object>[], before: Record<string, string> = {}) {
  const { fields, ...rest } = exchange()
  for (const [name, value] of Object.entries(before)) fields.set(name, value)
  for (const options of limits) {
    setFields(rest.response, now(guardOf(options).check(rest)).verdict.fields)
  }
  return Object.fromEntries(fields)
}

/** Three fields of an older dialect. */
const numbered = (name: string, limit: number, remaining: number, reset: unknown) => ({
  [`${name}-Limit`]: `${limit}`,
  [`${name}-Remaining`]: `${remaining}`,
  [`${name}-Reset`]: reset,
})

const one: GuardFields<object> = { ...good, headers: ['draft-11'] }
const api = { ...one, name: 'api', limit: 10, store: memoryStore() }
const both = (headers: GuardFields<object>['headers'], ...limits: readonly number[]) =>
  limits.map((limit) => ({ ...good, name: `of ${limit}`, limit, ...(headers && { headers }) }))

it.each<[string, GuardFields<object>[], object]>([
  [
    'describe the tightest of all where there is room for one only',
    both(['draft-7', 'legacy-delta'], 5, 1000),
    {
      ...{ RateLimit: 'limit=5, remaining=4, reset=60', 'RateLimit-Policy': '5;w=60, 1000;w=60' },
      ...numbered('X-RateLimit', 5, 4, '60'),
    },
  ],
  [
    'list one named policy once (H02), with the lower remaining',
    [api, { ...api, cost: 2 }],
    { RateLimit: '"api";r=7;t=60', 'RateLimit-Policy': '"api";q=10;w=60' },
  ],
  [
    'give two private policies two names (H02)',
    [one, { ...one, limit: 20 }],
    {
      RateLimit: '"default";r=4;t=60, "default-2";r=19;t=60',
      'RateLimit-Policy': '"default";q=5;w=60, "default-2";q=20;w=60',
    },
  ],
  [
    'have a private policy make way for one that the user named so (H02)',
    [one, { ...one, name: 'default' }],
    {
      RateLimit: '"default-2";r=4;t=60, "default";r=4;t=60',
      'RateLimit-Policy': '"default-2";q=5;w=60, "default";q=5;w=60',
    },
  ],
  [
    'speak one generation only: that of the first',
    [{ ...good, headers: ['draft-6'] }, ...both(['draft-11', 'legacy'], 3)],
    {
      ...{ 'RateLimit-Policy': '5;w=60, 3;w=60', ...numbered('RateLimit', 3, 2, '60') },
      ...numbered('X-RateLimit', 3, 2, expect.stringMatching(/^\d{10}$/)),
    },
  ],
  [
    'tell nothing of one without headers, or of a policy that is hidden or in shadow',
    [
      { ...good, mode: 'shadow', headers: ['draft-6'] },
      { ...good, headers: [] },
      { ...good, hidden: true },
      ...both(['draft-11'], 9),
    ],
    { RateLimit: '"of 9";r=8;t=60', 'RateLimit-Policy': '"of 9";q=9;w=60' },
  ],
])('several guards of one response %s', (_, limits, fields) => {
  expect(chained(limits)).toEqual(fields)
})

const ours = { 'RateLimit-Policy': '"default";q=5;w=60', RateLimit: '"default";r=4;t=60' }
const ofDraft6 = { 'RateLimit-Policy': '5;w=60', ...numbered('RateLimit', 5, 4, '60') }
const theirs = { RateLimit: '"edge";r=3;t=5', 'X-RateLimit-Limit': '9' }
const ofDraft7 = { 'RateLimit-Policy': '10;w=1', RateLimit: 'limit=10, remaining=9, reset=1' }

it.each<[string, GuardFields<object>['headers'], Record<string, string>, object]>([
  ['draft-3', ['draft-11'], { 'RateLimit-Policy': '10;w=1', 'RateLimit-Limit': '10' }, ours],
  ['draft-6', ['draft-11'], { 'RateLimit-Remaining': '9', 'RateLimit-Reset': '1' }, ours],
  ['draft-7', ['draft-11'], ofDraft7, ours],
  ['draft-11', ['draft-6'], { 'RateLimit-Policy': '"a";q=1', RateLimit: '"a";r=1' }, ofDraft6],
  ['no dialect that it sends', [], theirs, theirs],
])('H30: existing fields are replaced if their types differ, and kept otherwise: %s', (...row) => {
  const [, headers = [], before, after] = row
  expect(chained([{ ...good, headers }], before)).toEqual(after)
})

describe('a refusal', () => {
  const login = { name: 'login', limit: 1, window: '30s', algorithm: 'fixed-window' } as const

  /** What becomes of a second request. */
  function refused(limits: GuardFields<object>) {
    const guard = guardOf(limits)
    now(guard.check(exchange()))
    const { verdict } = now(guard.check(exchange()))
    const text = verdict.action === 'reject' ? verdict.body?.text : undefined
    return { fields: Object.fromEntries(verdict.fields), text: text ?? '' }
  }

  it('H32: adds jitter only to Retry-After', () => {
    const random = vi.spyOn(Math, 'random').mockReturnValue(0.8)
    const { fields } = refused({ ...login, retryJitter: 0.1 })
    random.mockRestore()
    expect(fields).toMatchObject({ 'Retry-After': '33', RateLimit: '"login";r=0;t=30' })
  })

  it('sends the problem if a message function returns nothing', () => {
    const { text } = refused({ ...login, message: (() => undefined) as never })
    expect(text).toContain('"title":"Quota Exceeded","status":429')
  })

  it('lists visible policies when a hidden one denies, and never names it', () => {
    const hidden = { name: 'secret', limit: 1, window: '1h', hidden: true } as const
    const { fields, text } = refused({ policies: [{ ...good, name: 'shown' }, hidden] })
    expect(JSON.stringify([fields, text])).not.toContain('secret')
    expect(fields).toMatchObject({ 'RateLimit-Policy': '"shown";q=5;w=60', 'Retry-After': '3600' })
  })

  it('does not name a countDenied policy that had room, but includes its wait', () => {
    const attempts = { name: 'attempts', limit: 2, window: '1h', countDenied: true } as const
    const { fields, text } = refused({ policies: [login, attempts] })
    expect(text).toContain('"violated-policies":["login"]')
    expect(fields.RateLimit).toBe('"login";r=0;t=30, "attempts";r=0;t=3600')
    expect(fields['Retry-After']).toBe('3600')
  })
})

describe('continueWith', () => {
  it.each([undefined, null, false, 0, '', 'route', 'router'])(
    'passes on an Error when a step throws or rejects with %o, which a framework might take as success',
    async (thrown) => {
      const next = vi.fn<(error?: Error) => void>()
      continueWith(next, () => {
        throw thrown
      })
      continueWith(next, () => Promise.reject(thrown))
      await new Promise((resolve) => setImmediate(resolve))

      expect(next).toHaveBeenCalledTimes(2)
      for (const [error] of next.mock.calls) {
        expect(error).toBeInstanceOf(Error)
        expect(error?.cause).toBe(thrown)
      }
    },
  )

  it('passes on a thrown object unchanged', async () => {
    const next = vi.fn<(error?: Error) => void>()
    continueWith(next, () => Promise.reject({ status: 418 }))
    await new Promise((resolve) => setImmediate(resolve))
    expect(next.mock.calls).toEqual([[{ status: 418 }]])
  })
})
