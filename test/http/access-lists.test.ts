import { memoryStore } from '@sluice/core'
import type { GuardFields } from '@sluice/http'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { AddressSet } from '../../packages/http/src/access/address-set.ts'
import { cpuMsOf } from '../support/cpu-ms.ts'
import { exchange, guardOf, now } from './exchange.ts'

type Lists = Pick<GuardFields<object>, 'allow' | 'block'>

const one = { limit: 1, window: '1m' } as const

/** What a guard with these lists does with three requests of one client: `pass` and `refuse` say that nobody counted. */
function treatment(lists: Lists, ip: string | undefined, options: GuardFields<object> = {}) {
  const guard = guardOf({ ...(options.policies ? {} : one), ...lists, ...options })
  const verdicts = [1, 2, 3].map(() => now(guard.check(exchange({ ip })) as never).verdict)
  const found = verdicts.map((verdict) => ('status' in verdict ? verdict.status : verdict.action))
  if (found.join() === 'pass,pass,pass') {
    expect(verdicts.flatMap(({ fields }) => fields)).toEqual([])
    return 'pass'
  }
  if (found.join() === '403,403,403') return 'refuse'
  expect(found).toEqual(['pass', 429, 429])
  return 'count'
}

describe('allow and block', () => {
  it.each([
    ['203.0.113.9', '203.0.113.10', 'count'],
    ['203.0.113.9', '[::FFFF:203.0.113.9]:443', 'pass'],
    ['203.0.113.9', '203.0.113.9:5555', 'pass'],
    ['::ffff:cb00:7100/120', '203.0.113.200', 'pass'],
    ['::ffff:0:0/96', '8.8.8.8', 'pass'],
    ['0.0.0.0/0', '2001:db8::1', 'count'],
    ['::/0', '2001:db8::1', 'pass'],
    ['::/0', '198.51.100.1', 'count'],
    ['2001:db8::/32', '2001:0DB8:ffff::1', 'pass'],
    ['2001:db8::/32', '2001:db9::1', 'count'],
    ['2001:db8:0:0:0:0:0:1', '2001:db8::1%eth0', 'pass'],
    ['2001:db8::1', '2001:db8::2', 'count'],
    ['10.0.0.0/8', 'unknown', 'count'],
    ['0.0.0.0/0', '', 'count'],
    ['0.0.0.0/0', undefined, 'count'],
    ['8.0.0.1', '010.0.0.1', 'count'],
  ])('with %s in the list, %s is treated as %s', (entry, address, expected) => {
    const ips = ['192.0.2.0/24', entry, '192.0.2.7']
    expect(treatment({ allow: { ips } }, address)).toBe(expected)
    const refused = expected === 'pass' ? 'refuse' : expected
    expect(treatment({ block: { ips } }, address)).toBe(refused)
    expect(treatment({ block: { ips }, allow: { ips } }, address)).toBe(refused)
  })

  it('match the keys of ready-made resolvers, of functions, and of policies that have their own', () => {
    const keys = ['@ip/203.0.113.9', 'user:42', '@@odd']
    expect(treatment({ allow: { keys } }, '203.0.113.9')).toBe('pass')
    expect(treatment({ allow: { keys } }, '203.0.113.8')).toBe('count')
    expect(treatment({ allow: { keys } }, '203.0.113.8', { key: () => 'user:42' })).toBe('pass')
    expect(treatment({ block: { keys } }, '203.0.113.8', { key: () => 'user:42' })).toBe('refuse')
    expect(treatment({ block: { keys } }, '203.0.113.8', { key: () => '@odd' })).toBe('refuse')
    const policies = [
      { ...one, name: 'a' },
      { ...one, name: 'b', key: () => 'user:42' },
    ]
    expect(treatment({ block: { keys } }, '198.51.100.1', { policies })).toBe('refuse')
  })

  it('refuse clients on both lists, wherever these are', () => {
    const ips = ['203.0.113.9']
    const keys = ['@ip/203.0.113.9']
    expect(treatment({ allow: { ips }, block: { keys } }, '203.0.113.9')).toBe('refuse')
    expect(treatment({ allow: { keys }, block: { ips } }, '203.0.113.9')).toBe('refuse')
    expect(treatment({ allow: { keys }, block: { keys } }, '203.0.113.9')).toBe('refuse')
  })

  it('admit allowed addresses without a key, whatever onMissingKey is', () => {
    const key = () => undefined
    const lists = { allow: { ips: ['203.0.113.9'] }, block: { keys: ['nobody'] } }
    for (const onMissingKey of ['ip', 'deny', 'skip', 'error'] as const) {
      expect(treatment(lists, '203.0.113.9', { key, onMissingKey })).toBe('pass')
    }
  })

  it('resolve no key, cost or limit if the address decides', () => {
    const asked = vi.fn(() => 1)
    const key = vi.fn(() => 'ada')
    const options = { key, cost: asked, limit: asked, defaultLimit: 1 }
    treatment({ allow: { ips: ['203.0.113.9'], keys: ['bob'] } }, '203.0.113.9', options)
    treatment({ block: { ips: ['203.0.113.9'], keys: ['bob'] } }, '203.0.113.9', options)
    expect(key).not.toHaveBeenCalled()
    treatment({ block: { keys: ['ada'] } }, '203.0.113.9', options)
    expect(key).toHaveBeenCalledTimes(3)
    expect(asked).not.toHaveBeenCalled()
  })

  it('refuse without calling the store, and notify observers once', () => {
    const store = memoryStore()
    const apply = vi.spyOn(store, 'apply')
    const onDecision = vi.fn()
    const own = { statusCode: 420, message: 'slow down', observers: { onDecision } }
    const guard = guardOf({ ...one, ...own, store, block: { ips: ['203.0.113.8/31'] } })
    const asked = exchange()
    const { verdict } = now(guard.check(asked))

    expect(verdict).toMatchObject({
      ...{ action: 'reject', status: 403, fields: [['Cache-Control', 'no-store']] },
      body: {
        contentType: 'application/problem+json',
        text: '{"type":"about:blank","title":"Forbidden","status":403}',
      },
    })
    expect(apply).not.toHaveBeenCalled()
    expect(onDecision).toHaveBeenCalledTimes(1)
    expect(onDecision.mock.calls[0]?.[0]).toMatchObject({
      decision: { allowed: false, outcomes: [], retryAfterMs: Number.POSITIVE_INFINITY },
      ...{ checks: [], policy: undefined, key: undefined, digest: undefined, route: undefined },
      ...{ answeredBy: 'guard', method: 'GET', request: asked.native },
    })
  })

  it('use the message or handler for refusals', async () => {
    const block = { ips: ['203.0.113.9'] }
    const found = await guardOf({ ...one, block, message: async () => ({ no: 1 }) }).check(
      exchange(),
    )
    expect(found.verdict).toMatchObject({ status: 403, body: { text: '{"no":1}' } })
    const handler = () => undefined
    const handled = now(guardOf({ ...one, block, handler } as never).check(exchange()))
    expect(handled.verdict).toMatchObject({ status: 403, handler })
  })

  it('come after skip, and are empty if they are', () => {
    const lists: Lists = { block: { ips: ['0.0.0.0/0'] } }
    expect(treatment(lists, '203.0.113.9', { skip: () => true })).toBe('pass')
    for (const list of [{}, { ips: [] }, { ips: [], keys: [] }]) {
      expect(treatment({ allow: list, block: list }, '203.0.113.9')).toBe('count')
    }
  })

  const noNetworks =
    '10.0.0.0/ 10.0.0.0/8/8 10.0.0.0/+8 10.0.0.0/255.0.0.0 010.0.0.0/8 203.0.113.9:80 ::ffff:010.0.0.1 [::1]:80 fe80::1%eth0 * localhost'
  it.each<[unknown, RegExp]>([
    [{ ips: ['10.0.0.1', '::1', '10.0.0'] }, /allow\.ips\[2\] must be an address or a network/],
    [{ ips: ['10.0.0.0/33'] }, /allow\.ips\[0\] must be .*, with a prefix from 0 to 32, but is/],
    [{ ips: ['2001:db8::/129'] }, /with a prefix from 0 to 128/],
    [{ ips: ['::ffff:10.0.0.0/24'] }, /with a prefix from 96 to 128/],
    [{ ips: ['10.0.0.1/8'] }, /the first address of the network, '10\.0\.0\.0\/8', but is '10/],
    [{ ips: ['2001:db8::1/32'] }, /'2001:db8::\/32'/],
    [{ ips: ['64:ff9b::/96'] }, /ips\[0\] must be an IPv4 network: clients behind NAT64/],
    [{ ips: ['64:ff9b:1::/48'] }, /ips\[0\] must be an IPv4 network: clients behind NAT64/],
    ...[...noNetworks.split(' '), ' 10.0.0.1', '10.0.0.1\n', '', undefined, 10].map(
      (entry): [unknown, RegExp] => [{ ips: [entry] }, /ips\[0\]/],
    ),
    [{ ips: '10.0.0.1' }, /allow\.ips must be an array/],
    [{ keys: ['a', ''] }, /allow\.keys\[1\] must be a key/],
    [{ keys: [42] }, /allow\.keys\[0\] must be a key/],
    [{ ip: ['10.0.0.1'] }, /there is no option 'ip'/],
    [null, /allow must be a plain object of lists, as in/],
    ['10.0.0.1', /allow must be a plain object of lists/],
  ])('%j is refused', (list, message) => {
    const options = { ...one, allow: list as never }
    expect(() => guardOf(options)).toThrow(message)
    const blocked = new RegExp(message.source.replace('allow', 'block'))
    expect(() => guardOf({ ...one, block: list as never })).toThrow(blocked)
    expect(() => guardOf({ ...one, routes: { '/x': options } })).toThrow(/routes\['\/x'\]: /)
  })
})

describe('a set of addresses', () => {
  it('treats an IPv4-mapped IPv6 address as IPv4, in the list and in requests', () => {
    const spellings = ['203.0.113.9', '::ffff:203.0.113.9', '64:ff9b::cb00:7109', '::203.0.113.9']
    for (const entry of [...spellings, '64:ff9b::203.0.113.0/120', '203.0.113.0/24']) {
      const set = new AddressSet([entry], 'ips')
      expect(spellings.map((address) => set.has(address))).toEqual([true, true, true, true])
      expect(set.has('64:ff9b::cb00:7209')).toBe(false)
    }
  })

  const address = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255))
  const number = (bytes: readonly number[]) => bytes.reduce((sum, byte) => sum * 256 + byte, 0)

  it('contains exactly the addresses in its networks', () => {
    const network = fc.tuple(address, fc.nat(32)).map(([bytes, length]) => {
      const size = 2 ** (32 - length)
      const first = Math.floor(number(bytes) / size) * size
      return { first, size, text: `${dotted(first)}/${length}` }
    })
    fc.assert(
      fc.property(fc.array(network, { maxLength: 5 }), address, fc.nat(), (networks, bytes, at) => {
        const texts = networks.map(({ text }) => text)
        const set = new AddressSet(texts, 'ips')
        const near = networks[at % Math.max(1, networks.length)]
        for (const asked of [number(bytes), near?.first, (near?.first ?? 1) - 1]) {
          if (asked === undefined || asked < 0) continue
          const isIn = networks.some(({ first, size }) => asked >= first && asked < first + size)
          expect(set.has(dotted(asked))).toBe(isIn)
          expect(set.has(`::ffff:${dotted(asked)}`)).toBe(isIn)
        }
      }),
    )
  })

  it('with 10,000 networks looks up 50,000 addresses quickly', () => {
    const networks = Array.from({ length: 10_000 }, (_, i) =>
      i % 2 === 0 ? `10.${i >> 8}.${i & 255}.0/24` : `2001:db8:${i.toString(16)}::/48`,
    )
    const set = new AddressSet(networks, 'ips')
    let found = 0
    const tookMs = cpuMsOf(() => {
      for (let i = 0; i < 50_000; i += 1) {
        if (set.has(`2001:db8:${(i % 20_000).toString(16)}:${(i >> 4).toString(16)}::1`)) found += 1
      }
    })

    expect(found).toBeGreaterThan(10_000)
    expect(tookMs).toBeLessThan(5_000)
  })

  function dotted(value: number): string {
    return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.')
  }
})
