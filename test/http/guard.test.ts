import { memoryStore } from '@sluice/core'
import { parseHeaders } from '@sluice/headers'
import { type GuardFields, ipKey } from '@sluice/http'
import { continueWith, setFields } from '@sluice/http/adapter'
import fc from 'fast-check'
import { parseList } from 'structured-headers'
import { describe, expect, it, vi } from 'vitest'
import { exchange, guardOf, now } from './exchange.ts'

const good = { limit: 5, window: '1m' } as const

describe('a guard', () => {
  it('answers at once where nothing is async', () => {
    const guard = guardOf({ ...good, key: () => 'ada', cost: () => 2, skip: () => false })

    const { decision, verdict } = now(guard.check(exchange()))

    expect(verdict.action).toBe('pass')
    expect(decision?.outcomes[0]?.remaining).toBe(3)
  })

  it.each<[string, GuardFields<object>]>([
    ['skip', { skip: async () => false }],
    ['key', { key: async () => 'ada' }],
    ['cost', { cost: async () => 1 }],
    ['limit', { limit: async () => 5, defaultLimit: 5 }],
  ])('answers with a promise where %s is async', async (_, options) => {
    const passage = guardOf({ ...good, ...options }).check(exchange())

    expect(passage).toBeInstanceOf(Promise)
    expect((await passage).decision?.allowed).toBe(true)
  })

  it('asks in order: skip, keys, costs, limits; and nothing after a skip', async () => {
    const asked: string[] = []
    const note =
      <T>(what: string, value: T) =>
      async () => {
        asked.push(what)
        return value
      }
    const policy = (name: string) => ({
      ...good,
      name,
      key: note(`key ${name}`, 'ada'),
      cost: note(`cost ${name}`, 1),
      limit: note(`limit ${name}`, 5),
      defaultLimit: 5,
    })
    const policies = [policy('a'), policy('b')]
    await guardOf({ skip: note('skip', false), policies }).check(exchange())

    const order = ['skip', 'key a', 'key b', 'cost a', 'cost b', 'limit a', 'limit b']
    expect(asked).toEqual(order)
    await guardOf({ skip: note('skip again', true), policies }).check(exchange())
    expect(asked).toEqual([...order, 'skip again'])
  })

  it('leaves no rejection unhandled when two functions fail', async () => {
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    const fail = (how: string) => async () => Promise.reject(new Error(how))
    const policies = [
      { ...good, name: 'a', key: fail('first'), cost: fail('third') },
      { ...good, name: 'b', key: () => raise('second') },
    ]

    await expect(guardOf({ policies }).check(exchange())).rejects.toThrow('first')
    await new Promise((resolve) => setImmediate(resolve))

    expect(unhandled).not.toHaveBeenCalled()
    process.off('unhandledRejection', unhandled)
  })

  it('counts all that have no address in one bucket', () => {
    const keys: string[] = []
    const guard = guardOf({
      ...good,
      limit: 1,
      observers: { onDecision: ({ checks }) => void keys.push(checks[0]?.key ?? '') },
    })
    now(guard.check(exchange({ ip: undefined })))
    now(guard.check(exchange({ ip: 'not an address' })))

    expect(keys).toEqual(['@ip/invalid', '@ip/invalid'])
    expect(ipKey('')).toBe('@ip/invalid')
  })

  it('keeps the keys of scopes apart, whatever a client may put into its own', () => {
    const store = memoryStore()
    const guard = guardOf({ ...good, store, key: (native) => (native as { key: string }).key })
    const used = (scope: string, key: string) => {
      const { decision } = now(guard.check({ ...exchange({}, scope), native: { key } }))
      return 5 - (decision?.outcomes[0]?.remaining ?? 0)
    }
    const text = fc.oneof(
      fc.constantFrom('', '/', 'a', '@', '@scope/1/a/', 'GET /', '1/a/'),
      fc.string({ maxLength: 6 }),
    )
    const seen = new Map<string, [string, string]>()
    fc.assert(
      fc.property(text, text, (scope, tail) => {
        const key = `k${tail}`
        const known = JSON.stringify([scope, key])
        if (seen.has(known)) return
        seen.set(known, [scope, key])
        expect(used(scope, key)).toBe(1)
      }),
    )
    expect([used('GET /a', 'bk'), used('GET /ab', 'k'), used('GET /', 'abk')]).toEqual([1, 1, 1])
    expect(used('', '@scope/3/a/b/k')).toBe(1)
    expect(used('a/b', 'k')).toBe(1)
  })

  it('names the private policies of all scopes apart, in names that every header can carry', () => {
    const guard = guardOf({ ...good, limit: 1_000_000, headers: ['draft-11'] })
    const names = new Map<string, string>()
    const scope = fc.oneof(
      fc.constantFrom('GET /a/b', 'GET /a-b', 'GET /a/:b', 'GET /A/b', '/a/b', 'GET /é', 'GET /è'),
      fc.string({ minLength: 1, unit: 'grapheme', maxLength: 200 }),
    )
    fc.assert(
      fc.property(scope, (place) => {
        const { fields, ...rest } = exchange({}, place)
        setFields(rest.response, now(guard.check(rest)).verdict.fields)
        const policy = parseHeaders(Object.fromEntries(fields)).policies[0]
        expect(policy?.name).toMatch(/^default-?[A-Za-z0-9._-]{0,56}$/)
        expect(parseList(fields.get('RateLimit') ?? '')).toHaveLength(1)
        expect(names.get(policy?.name ?? '') ?? place).toBe(place)
        names.set(policy?.name ?? '', place)
      }),
      { numRuns: 300 },
    )
  })

  it('calls a route by a name that people can read', () => {
    const { fields, ...rest } = exchange({}, 'PATCH /search/:q')
    setFields(rest.response, now(guardOf(good).check(rest)).verdict.fields)

    expect(fields.get('RateLimit')).toBe('"default-PATCH-search-q";r=4;t=60')
  })

  it('joins whatever stands on the response already into lists that parse', () => {
    const guard = guardOf({ ...good, limit: 1_000_000, headers: ['draft-11'] })
    const item = fc
      .tuple(
        fc.string({ maxLength: 8 }),
        fc.nat(99),
        fc.constantFrom(';r=1', ';q=1', ';r=1;t=', ''),
      )
      .map(([name, n, rest]) => `"${name}";r=${n};q=${n}${rest}`)
    const field = fc.oneof(
      fc.string(),
      item,
      fc.array(item, { maxLength: 4 }).map((all) => all.join()),
    )
    fc.assert(
      fc.property(field, field, (state, policy) => {
        const { fields, ...rest } = exchange()
        fields.set('RateLimit', state)
        fields.set('RateLimit-Policy', policy)
        setFields(rest.response, now(guard.check(rest)).verdict.fields)
        for (const name of ['RateLimit', 'RateLimit-Policy']) {
          const names = parseList(fields.get(name) ?? '').map(([value]) => value)
          expect(names).toContain('default')
          expect(new Set(names).size).toBe(names.length)
        }
      }),
      { numRuns: 500 },
    )
  })

  it('that stands twice before one response is listed once, as it was left', () => {
    const { fields, ...rest } = exchange()
    const guard = guardOf(good)
    setFields(rest.response, now(guard.check(rest)).verdict.fields)
    setFields(rest.response, now(guard.check(rest)).verdict.fields)

    expect(fields.get('RateLimit')).toBe('"default";r=3;t=60')
    expect(fields.get('RateLimit-Policy')).toBe('"default";q=5;w=60')
  })

  it('without headers writes nothing, and leaves the fields to the next guard', () => {
    const { fields, ...rest } = exchange()
    const silent = now(guardOf({ ...good, headers: [] }).check(rest))
    expect(silent.verdict).toEqual({ action: 'pass', fields: [] })
    setFields(rest.response, now(guardOf({ ...good, name: 'b' }).check(rest)).verdict.fields)

    expect(fields.get('RateLimit')).toBe('"b";r=4;t=60')
  })

  it('joins what others add between two guards of one response', () => {
    const { fields, ...rest } = exchange()
    const headers = ['draft-11'] as const
    setFields(rest.response, now(guardOf({ ...good, headers }).check(rest)).verdict.fields)
    fields.set('RateLimit', `${fields.get('RateLimit')}, "theirs";r=1;t=1`)
    setFields(
      rest.response,
      now(guardOf({ ...good, name: 'b', headers }).check(rest)).verdict.fields,
    )

    expect(fields.get('RateLimit')).toBe('"theirs";r=1;t=1, "default";r=4;t=60, "b";r=4;t=60')
  })

  it('says nothing by which a hidden policy could be counted', () => {
    const { fields, ...rest } = exchange()
    setFields(rest.response, now(guardOf({ ...good, hidden: true }).check(rest)).verdict.fields)
    setFields(rest.response, now(guardOf(good).check(rest)).verdict.fields)

    expect(fields.get('RateLimit')).toBe('"default";r=4;t=60')
  })
})

describe('continueWith', () => {
  it.each([undefined, null, false, 0, '', 'route', 'router'])(
    'hands on an Error when a step throws or rejects with %o, which a framework might take for leave',
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

  it('hands on an object that was thrown as it is', () => {
    const next = vi.fn<(error?: Error) => void>()
    continueWith(next, () => {
      throw { status: 418 }
    })

    expect(next.mock.calls[0]?.[0]).toEqual({ status: 418 })
  })
})

function raise(message: string): never {
  throw new Error(message)
}
