import {
  all,
  apiKey,
  defineKey,
  firstOf,
  header,
  type Id,
  type KeyResolver,
  tenant,
  user,
} from '@sluice/http'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { resolveKey } from '../../packages/http/src/keys/resolver.ts'
import { scopedKey } from '../../packages/http/src/request/exchange.ts'
import { raise } from '../support/raise.ts'
import { exchange } from './exchange.ts'

function keyOf(resolver: KeyResolver<object>, headers: Record<string, string> = {}): unknown {
  const { native, request } = exchange({ header: (name) => headers[name] })
  return resolveKey(resolver, native, request)
}

describe('user() and tenant()', () => {
  it.each<[Id, string]>([
    ['ada', '@user/ada'],
    ['@tenant/acme', '@user/@tenant/acme'],
    ['undefined', '@user/undefined'],
    [' ', '@user/ '],
    [42, '@user/42'],
    [0, '@user/0'],
    [-0, '@user/0'],
    [-7, '@user/-7'],
    [2n ** 64n, '@user/18446744073709551616'],
  ])('count the id %s as %s', (id, key) => {
    expect(keyOf(user(() => id))).toBe(key)
    expect(keyOf(tenant(() => id))).toBe(key.replace('@user/', '@tenant/'))
  })

  it.each([undefined, null, '', Number.NaN])('are missing where the id is %s', async (id) => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    expect(keyOf(user(() => id))).toBeUndefined()
    expect(await keyOf(tenant(async () => id))).toBeUndefined()
    const byId = user(() => id)
    expect(keyOf(firstOf(byId, () => 'next'))).toBe('next')
    expect(warn).not.toHaveBeenCalled()
    warn.mockRestore()
  })

  it('are missing for an invalid id, and warn once', () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    for (const id of [0.5, 2 ** 53, Number.POSITIVE_INFINITY, {}, [], true, Symbol('id')]) {
      expect(keyOf(user(() => id as never)), String(id)).toBeUndefined()
    }
    const message =
      'sluice: the function of user(…) returned a number, which is not an id and counts as missing: return a string, a bigint, or a whole number up to 2^53 − 1 (larger ids would collide)'
    expect(warn.mock.calls).toEqual([[message]])
    warn.mockRestore()
  })

  it('await an async id, and throw what its function throws', async () => {
    await expect(keyOf(user(async () => 42))).resolves.toBe('@user/42')
    const failing = user(async () => raise('no session'))
    await expect(keyOf(failing)).rejects.toThrow('no session')
    expect(() => keyOf(tenant(() => raise('no tenant')))).toThrow('no tenant')
  })

  it.each([undefined, null, 'id', {}])('need a function, not %s', (find) => {
    for (const make of [user, tenant]) {
      const message = `${make.name}(find) must be a function`
      expect(() => Reflect.apply(make, undefined, [find])).toThrow(message)
    }
  })
})

const text = fc.string({
  unit: fc.constantFrom(...'a1:|-{}*\0@/', 'user', 'all', 'scope'),
  minLength: 1,
  maxLength: 8,
})
const leaf = fc.record({
  kind: fc.constantFrom('user', 'tenant', 'own', 'header x', 'header y', 'api key'),
  text,
})
const { identity } = fc.letrec<{ identity: Identity }>((tie) => ({
  identity: fc.oneof(
    { maxDepth: 2, withCrossShrink: true },
    leaf,
    fc
      .array(tie('identity'), { minLength: 1, maxLength: 3 })
      .map((parts) => ({ kind: 'all', parts })),
    fc.tuple(tie('identity')).map((parts) => ({ kind: 'firstOf', parts })),
  ),
}))
const scoped = fc.tuple(fc.oneof(fc.constant(''), text), identity)

it('keys of all kinds differ for two identities, and for two places', () => {
  fc.assert(
    fc.property(scoped, scoped, ([scope, one], [otherScope, other]) => {
      const keys = [scopedKey(scope, String(key(one))), scopedKey(otherScope, String(key(other)))]
      const same = scope === otherScope && plain(one) === plain(other)
      expect(keys[0] === keys[1]).toBe(same)
    }),
    { numRuns: 3_000 },
  )
})

type Identity = { kind: string; text: string } | { kind: string; parts: Identity[] }

function key(identity: Identity): unknown {
  return keyOf(resolverOf(identity))
}

function resolverOf(identity: Identity): KeyResolver<object> {
  if ('parts' in identity) {
    const parts = identity.parts.map(resolverOf)
    return identity.kind === 'all' ? all(...parts) : firstOf(...parts)
  }
  const { kind, text: value } = identity
  if (kind === 'user') return user(() => value)
  if (kind === 'tenant') return tenant(() => value)
  if (kind === 'own') return () => value
  const [resolver, field] =
    kind === 'api key' ? [apiKey(), 'x-api-key'] : [header(kind.slice(7)), kind.slice(7)]
  const { request } = exchange({ header: (name) => (name === field ? value : undefined) })
  return defineKey((native) => resolver(native, request))
}

/** What `firstOf` of one yields is that one. */
function plain(identity: Identity): string {
  if (!('parts' in identity)) return JSON.stringify(identity)
  const parts = identity.parts.map(plain)
  return identity.kind === 'all' ? `all[${parts.join()}]` : (parts[0] ?? '')
}
