import {
  all,
  apiKey,
  bearer,
  firstOf,
  type GuardFields,
  type HttpRequest,
  header,
  ip,
  ipKey,
  type KeyResolver,
  route,
  SluiceError,
  tenant,
  user,
} from '@sluice/http'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { resolveKey } from '../../packages/http/src/keys/resolver.ts'
import { type Client, clientsOf, exchange, guardOf } from './exchange.ts'

interface Given extends Partial<Pick<HttpRequest, 'ip' | 'route' | 'method'>> {
  headers?: Record<string, string>
}

function keyOf(resolver: KeyResolver<unknown>, { headers = {}, ...given }: Given = {}): unknown {
  const header = (name: string) => headers[name]
  return resolveKey(resolver, undefined, exchange({ ip: undefined, header, ...given }).request)
}

const octet = fc.integer({ min: 0, max: 255 })
const group = fc.integer({ min: 0, max: 0xffff })
const ipv6 = fc.tuple(group, group, group, group, group, group, group, group)

/** Several ways to write one IPv6 address. */
function spellings(groups: readonly number[]): string[] {
  const full = groups.map((value) => value.toString(16).padStart(4, '0')).join(':')
  const short = groups.map((value) => value.toString(16)).join(':')
  const compressed = new URL(`http://[${short}]/`).hostname
  const texts = [full, full.toUpperCase(), short, compressed, compressed.slice(1, -1)]
  return [...texts, `[${short}]:8080`, `${short}%eth0`]
}

describe('ip()', () => {
  const noAddresses =
    '::ffff:010.0.0.1 ::ffff:10.0.0.01 ::010.0.0.1 64:ff9b::0x7f.0.0.1 ::ffff:256.0.0.1 ::ffff:1.2.3 1.2.3.4:: ::1.2.3.4:5 1 010.0.0.1 0x7f.1 256.1.1.1 1.2.3 unknown'
  it.each<[string, string]>([
    ['203.0.113.9', '@ip/203.0.113.9'],
    ['203.0.113.9:5555', '@ip/203.0.113.9'],
    ['0:0:0:0:0:FFFF:203.0.113.9', '@ip/203.0.113.9'],
    ['[64:FF9B:0::203.0.113.9]:443', '@ip/203.0.113.9'],
    ['64:ff9b:1:abcd:0:1:cb00:7109', '@ip/203.0.113.9'],
    // RFC 6052 §2.2, behind prefixes of 48, 56 and 64 bits.
    ['64:ff9b:1:cb00:71:900::', '@ip/203.0.113.9'],
    ['64:ff9b:1:33cb:0:7109::', '@ip/203.0.113.9'],
    ['64:ff9b:1:4444:cb:71:900:0', '@ip/203.0.113.9'],
    ['64:ff9b::', '@ip/64:ff9b::/64'],
    ['64:ff9b:2::203.0.113.9', '@ip/64:ff9b:2::/64'],
    ['::', '@ip/::/64'],
    ['2001:db8::1.2.3.4', '@ip/2001:db8::/64'],
    ['[2001:DB8:1:2::1]:443', '@ip/2001:db8:1:2::/64'],
    ['::1', '@ip/::/64'],
    ...[
      ...noAddresses.split(' '),
      '',
      '203.0.113.9, 10.0.0.1',
      '1.2.3.4\r\nX: y',
      ':'.repeat(1_000_000),
    ].map((text): [string, string] => [text, '@ip/invalid']),
  ])('counts %s as %s', (address, key) => {
    expect(keyOf(ip(), { ip: address })).toBe(key)
    expect(ipKey(address)).toBe(key)
  })

  it('returns a canonical key, or the one for invalid addresses, for any string', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.ipV4(), fc.ipV6(), fc.ipV4Extended()), (text) => {
        expect(ipKey(text)).toMatch(/^@ip\/(invalid|[\d.]+|[0-9a-f:]+\/64)$/)
      }),
      { numRuns: 2_000 },
    )
  })

  it('returns one key for all spellings of an address, and for its prefix', () => {
    fc.assert(
      fc.property(ipv6, ipv6, ([a, b, c, d, ...low], [, , , , ...other]) => {
        const texts = [low, other].flatMap((rest) => spellings([a, b, c, d, ...rest]))
        const keys = texts.map((text) => ipKey(text))
        const isMapped = [a, b, c, d].every((value) => value === 0)
        if (!isMapped) expect(new Set(keys).size).toBe(1)
      }),
    )
  })

  it('returns one key for all spellings of an IPv4-mapped address, and never one for two IPv4', () => {
    const octets = fc.tuple(fc.integer({ min: 1, max: 255 }), octet, octet, octet)
    const hex = (a: number, b: number) => (a * 256 + b).toString(16)
    const forms = ([a, b, c, d]: readonly [number, number, number, number]): string[] =>
      ['::ffff:', '::', '64:ff9b::', '64:ff9b:1::', '64:ff9b:1:2::'].flatMap((prefix) => {
        const dotted = `${prefix}${a}.${b}.${c}.${d}`
        const plain = `${prefix}${hex(a, b)}:${hex(c, d)}`
        return [dotted, plain, plain.toUpperCase(), `[${dotted}]:80`, `${dotted}%eth0`]
      })
    fc.assert(
      fc.property(octets, octets, (one, two) => {
        const keys = new Set([one.join('.'), ...forms(one)].map((text) => ipKey(text)))
        expect([...keys]).toEqual([`@ip/${one.join('.')}`])
        const others = new Set(forms(two).map((text) => ipKey(text)))
        expect(others.has(ipKey(one.join('.')))).toBe(one.join('.') === two.join('.'))
      }),
    )
  })

  it('counts by the given prefixes, and is missing without an address', () => {
    expect(keyOf(ip(), { ip: undefined })).toBeUndefined()
    expect(ipKey('203.0.113.9', { prefix4: 24 })).toBe('@ip/203.0.113.0/24')
    expect(ipKey('2001:db8:1:2::1', { prefix6: 48 })).toBe('@ip/2001:db8:1::/48')
    expect(ipKey('2001:db8::1', { prefix6: 128 })).toBe('@ip/2001:db8::1')
  })

  const wrong = [{ prefix6: 0 }, { prefix6: 129 }, { prefix4: 33 }, { prefix4: 0.5 }]
  it.each([...wrong, { prefix6: '64' }, { prefix: 64 }])('%j is refused', (options) => {
    expect(() => Reflect.apply(ip, undefined, [options])).toThrow(/prefix/)
  })
})

describe('keyOf()', () => {
  const account = user(() => undefined)

  it.each<[() => string, string]>([
    [() => account.keyOf(42), '@user/42'],
    [() => tenant(() => 1).keyOf(7n), '@tenant/7'],
    [() => apiKey().keyOf('k1'), '@key/k1'],
    [() => bearer({ verify: () => false }).keyOf('t'), '@bearer/t'],
    [() => header('X-Plan').keyOf('gold'), '@header/x-plan/gold'],
    [() => ip({ prefix4: 24 }).keyOf('203.0.113.9'), '@ip/203.0.113.0/24'],
    [() => route().keyOf('GET /users/:id'), '@route/GET /users/:id'],
    [() => all(all(account), ip()).keyOf(['a'], '::1'), '@all/14:@all/7:@user/a9:@ip/::/64'],
    [() => all(() => 'x', firstOf(account)).keyOf('@x', 'a'), '@all/3:@@x7:@user/a'],
    [() => firstOf(account, ip()).keyOf('a'), '@user/a'],
    [() => firstOf(account, ip()).keyOf(undefined, '203.0.113.9'), '@ip/203.0.113.9'],
    [() => all(firstOf(account, ip())).keyOf([undefined, '::1']), '@all/9:@ip/::/64'],
  ])('%s', (find, key) => {
    expect(find()).toBe(key)
  })

  it('is the key that a request has, for any identity', () => {
    const some = fc.string({ minLength: 1 })
    fc.assert(
      fc.property(some, fc.ipV4(), some, (id, address, text) => {
        const byUser = user(() => id)
        const both = all(byUser, ip(), () => text)
        expect(both.keyOf(id, address, text)).toBe(keyOf(both, { ip: address }))
      }),
    )
  })

  it.each<[() => unknown, RegExp]>([
    [() => account.keyOf(''), /user\(…\)\.keyOf\(id\) must be a non-empty string.*but is ''/],
    [() => account.keyOf(1.5), /keyOf\(id\).*but is 1\.5/],
    [() => account.keyOf(undefined), /keyOf\(id\).*but is undefined/],
    [() => apiKey().keyOf(''), /apiKey\(…\)\.keyOf\(credential\)/],
    [() => Reflect.apply(ip().keyOf, undefined, [5]), /ip\(\)\.keyOf\(address\).*but is 5/],
    [() => all(account, ip()).keyOf('ada'), /one value per resolver: 2, but got 1/],
    [() => all(() => 'x').keyOf(''), /a non-empty string/],
    [() => Reflect.apply(ipKey, undefined, [5]), /ipKey\(address\) must be an address as .*5/],
    [() => Reflect.apply(ipKey, undefined, []), /ipKey\(address\).*undefined/],
  ])('%s is refused', (find, message) => {
    expect(find).toThrow(message)
    expect(find).toThrow(SluiceError)
  })
})

describe('header(), apiKey() and bearer()', () => {
  it.each([true, 'yes', {}, null])('are refused with verify: %j', (verify) => {
    for (const make of [apiKey, bearer]) {
      expect(() => make({ verify: verify as never })).toThrow(
        /verify of (apiKey|bearer)\(…\) must be a function/,
      )
    }
  })

  it('read the value', () => {
    const headers = { 'x-api-key': 'k1', authorization: 'bEaReR  t0ken', 'x-tenant': ' acme ' }
    expect(keyOf(apiKey(), { headers })).toBe('@key/k1')
    expect(keyOf(bearer(), { headers })).toBe('@bearer/t0ken')
    expect(keyOf(header('X-Tenant'), { headers })).toBe('@header/x-tenant/ acme ')
    expect(keyOf(apiKey({ header: 'X-Tenant' }), { headers })).toBe('@key/ acme ')
  })

  it.each([
    {},
    { 'x-api-key': '', authorization: '' },
    { 'x-api-key': '  ', authorization: 'Bearer ' },
    { authorization: 'Basic abc' },
  ])('are missing in %j', (headers) => {
    expect(keyOf(apiKey(), { headers })).toBeUndefined()
    expect(keyOf(bearer(), { headers })).toBeUndefined()
  })

  it.each(['', 'a b', 'x\r\ny', 'é', undefined, 42])('a header named %j is refused', (name) => {
    expect(() => Reflect.apply(header, undefined, [name])).toThrow(/must be the name of a header/)
  })
})

describe('the key of a request', () => {
  const one = { limit: 1, window: '1m' } as const
  const byUser = ({ headers }: Client) => headers.user
  const ada = { user: 'ada' }

  it('is resolved once, although several policies use it', async () => {
    const key = vi.fn(byUser)
    const policies = [
      { ...one, name: 'a' },
      { ...one, name: 'b', window: '1h' },
    ] as const
    await clientsOf({ key, policies }).ask(ada)

    expect(key).toHaveBeenCalledTimes(1)
  })

  const nameOf = (client: Client) => (Reflect.get(client, 'user') as { name: string }).name
  it.each<[string, GuardFields<Client>]>([
    ['key', { key: nameOf }],
    ['key', { key: async (client) => nameOf(client) }],
    ['limit', { limit: (client) => nameOf(client).length, defaultLimit: 1 }],
    ['cost', { cost: async (client) => nameOf(client).length }],
    ['enforce', { enforce: async (client) => nameOf(client) !== '' }],
  ])(
    'or another value is reported with its place if its function is wrong: %s',
    async (option, own) => {
      const { ask } = clientsOf({ policies: [{ ...one, name: 'account', ...(own as object) }] })
      const message = new RegExp(
        `^${option} of 'account' in \\w+: Cannot read properties of undefined`,
      )
      await expect(ask()).rejects.toThrow(message)
      await expect(ask()).rejects.toMatchObject({ name: 'TypeError', cause: { name: 'TypeError' } })
    },
  )

  it("may be missing: 'deny' refuses, without fields and without a promise", async () => {
    const { ask } = clientsOf({ ...one, key: byUser, onMissingKey: 'deny' })
    const { status, fields, body } = await ask()
    expect([status, fields]).toEqual([429, { 'Cache-Control': 'no-store' }])
    expect(body).toBe('{"type":"about:blank","title":"Too Many Requests","status":429}')
    expect((await ask(ada)).status).toBe(200)
  })

  it("may be missing: 'skip' passes without fields", async () => {
    const { ask, statuses } = clientsOf({ ...one, key: byUser, onMissingKey: 'skip' })
    expect(await statuses(3)).toEqual([200, 200, 200])
    expect((await ask()).fields).toEqual({})
    expect(await statuses(2, ada)).toEqual([200, 429])
  })

  it("may be missing for one policy: 'skip' enforces the others", async () => {
    const address = { ...one, name: 'address', limit: 2, key: ip() }
    const policies = [{ ...one, name: 'account', key: byUser }, address]
    const { ask, statuses } = clientsOf({ onMissingKey: 'skip', policies })
    expect((await ask()).fields['RateLimit-Policy']).toBe('"address";q=2;w=60')
    expect(await statuses(2)).toEqual([200, 429])
  })

  it("may be missing: 'error' throws", async () => {
    const { ask } = clientsOf({ ...one, key: byUser, onMissingKey: 'error' })
    await expect(ask()).rejects.toMatchObject({ code: 'SLUICE_KEY_MISSING' })
    expect((await ask(ada)).status).toBe(200)
  })
})

describe('a limiter by credentials that nobody verifies', () => {
  const one = { limit: 1, window: '1m' } as const
  const issued = () => true
  const warning = () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    onTestFinished(() => void warn.mockRestore())
    return () => warn.mock.calls.flat().filter((text) => text.includes('never limited'))
  }

  it.each<[string, GuardFields<object>]>([
    ['with verify', { ...one, key: firstOf(apiKey({ verify: issued }), ip()) }],
    ['verified before', { ...one, key: all(bearer({ verify: false }), ip()) }],
    ['beside a policy by address', { policies: [apiKey(), ip()].map((key) => ({ ...one, key })) }],
    ['by address', { ...one, key: firstOf(ip()) }],
  ])('does not warn without a risk: %s', (_how, options) => {
    const said = warning()
    guardOf(options)
    expect(said()).toEqual([])
  })

  it('warns once, and says what to do', () => {
    const said = warning()
    guardOf({ ...one, key: firstOf(apiKey(), ip()) })
    guardOf({ ...one, routes: { '/x': { ...one, key: bearer() } } })
    expect(said()).toEqual([expect.stringMatching(/apiKey\(\{ verify: .*verify: false$/)])
  })
})

it('route() is the pattern with its method, HEAD as GET, and one key for all that is unmatched', () => {
  expect(keyOf(route(), { route: '/users/:id' })).toBe('@route/GET /users/:id')
  expect(keyOf(route(), { route: '/users/:id', method: 'HEAD' })).toBe('@route/GET /users/:id')
  expect(keyOf(route(), { route: '/users/:id', method: 'POST' })).toBe('@route/POST /users/:id')
  expect(keyOf(route(), {})).toBe(keyOf(route(), { method: 'POST' }))
})

describe('all() and firstOf()', () => {
  const given = { ip: '203.0.113.9', headers: { 'x-api-key': 'k' } }

  it('continues if a resolver returns a key that is too long', () => {
    const long = (length: number) => () => 'k'.repeat(length)
    expect(keyOf(long(16_385), given)).toBeUndefined()
    expect(keyOf(firstOf(long(16_385), ip()), given)).toBe('@ip/203.0.113.9')
    expect(keyOf(firstOf(long(16_384), ip()), given)).toHaveLength(16_384)
  })

  it('is missing if a part is, or takes the first one present', () => {
    expect(keyOf(all(ip(), bearer()), given)).toBeUndefined()
    expect(keyOf(firstOf(bearer(), apiKey(), ip()), given)).toBe('@key/k')
    expect(keyOf(firstOf(bearer()), given)).toBeUndefined()
  })

  it('returns promises only if a resolver does', async () => {
    const slow = async (): Promise<string> => 'slow'
    const none = async () => undefined
    expect(keyOf(all(ip(), apiKey()), given)).toBeTypeOf('string')
    const both = keyOf(all(ip(), slow), given)
    await expect(both).resolves.toBe('@all/15:@ip/203.0.113.94:slow')
    await expect(keyOf(firstOf(none, slow))).resolves.toBe('slow')
  })

  it.each([[[]], [['ip']], [[undefined]]])('%j are refused', (resolvers) => {
    for (const combine of [all, firstOf]) {
      expect(() => Reflect.apply(combine, undefined, resolvers)).toThrow(/at least one resolver/)
    }
  })
})

describe('a key of a function of yours', () => {
  it('is used unchanged, and never collides with a built-in one', () => {
    expect(keyOf(() => 'user:42')).toBe('user:42')
    expect(keyOf(() => '@ip/203.0.113.9')).toBe('@@ip/203.0.113.9')
  })

  it('that is not a string is missing, with one warning', () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    for (const value of [undefined, null, '']) expect(keyOf(() => value)).toBeUndefined()
    expect(warn).not.toHaveBeenCalled()
    for (const value of [42, 0, Number.NaN, {}])
      expect(keyOf((() => value) as never)).toBeUndefined()
    const message =
      'sluice: a key function returned a number instead of a string: it counts as missing; write user((req) => …), which takes ids, or String(id)'
    expect(warn.mock.calls).toEqual([[message]])
    warn.mockRestore()
  })
})
