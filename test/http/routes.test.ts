import { memoryStore } from '@sluice/core'
import type { GuardFields, GuardOptions, Routing } from '@sluice/http'
import { createGuard } from '@sluice/http/adapter'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { exactRouting, exchange, guardOf, now } from './exchange.ts'
import { errorOf, type Wrong } from './wrong-options.ts'

const of = (limit: number, more: object = {}) => ({ limit, window: '1m', ...more }) as const

/** Makes a guard of options, beyond the types too. */
const making = (options: object) => () => guardOf(options as GuardFields<object>)

/** The limit that applies to a request; `undefined` where none does. */
function limitOf(
  routes: NonNullable<GuardOptions<object>['routes']>,
  { method = 'GET', path }: { method?: string; path: string },
  routing: Routing = exactRouting,
): number | undefined {
  const guard = createGuard<object>({ routes }, { where: 'rateLimit', routing })
  return now(guard.check(exchange({ method, path }))).decision?.outcomes[0]?.limit
}

const lax = { caseSensitive: false, ignoreTrailingSlash: true, ignoreDuplicateSlashes: true }

describe('routes', () => {
  it.each([
    ['/users/7', 1],
    ['/users/me', 2],
    ['/users/', 1],
    ['/users/7/posts', undefined],
    ['/files/a/b', 3],
    ['/users/7?x=/users/me', 1],
    ['/users/a%2Fb', 1],
    ['/Users/7', undefined],
    ['/users/7/', undefined],
    [`/users/${'x'.repeat(5_000)}`, 1],
    ['/users/%zz', 1],
    ['/users/%C3%28', 1],
    ['/files/%', 3],
    ['/%', undefined],
    ['', undefined],
    ['*', undefined],
  ])("match like a framework's router: %s", (path, limit) => {
    const routes = { '/users/:id': of(1), '/users/me': of(2), '/files/*': of(3) }
    expect(limitOf(routes, { path })).toBe(limit)
  })

  it.each(['/Login', '/login/', '//login', '/LOGIN//'])(
    '%s is /login with a lax router',
    (path) => {
      expect(limitOf({ '/login': of(1) }, { path }, lax)).toBe(1)
      expect(limitOf({ '/login': of(1) }, { path })).toBeUndefined()
    },
  )

  it.each<[string, number | undefined]>([
    ['/LOGIN/', 1],
    ['/users/%6De', 3],
    ['/users/me', 2],
    ['/files/', 4],
    ['/files//', 4],
    ['/files', undefined],
    ['/json/a.JSON', 5],
    ['/number/7', 6],
    ['/number/x', undefined],
    ['/word/x', 7],
    ['/word/7', undefined],
    ['/caf%c3%A9', 8],
    ['/caf%c3%A9/%zz', undefined],
  ])('with an unknown router, %s matches what any router would', (path, limit) => {
    const routes = {
      '/login': of(1),
      '/users/me': of(2),
      '/users/:id': of(3),
      '/files/*': of(4),
      '/json/:name.json': of(5),
      '/number/:n(^\\d+$)': of(6),
      '/word/:w(^\\D+$)': of(7),
      '/caf%C3%A9': of(8),
    }
    expect(limitOf(routes, { path }, { ...lax, lenient: true })).toBe(limit)
  })

  it.each<[string, GuardFields<object>, string[]]>([
    [
      'takes the place of the limits around it',
      { ...of(3), routes: { 'POST /login': of(1) } },
      ['POST /login: 1 of 3', 'GET /: 3 of 5', 'GET /login: 0 of 1'],
    ],
    [
      'is added to the limits around it: all or nothing',
      { ...of(4), routes: { 'POST /login': { ...of(2), combine: 'add' } } },
      ['POST /login: 2 of 3', 'GET /: 2 of 3', 'POST /login: 0 of 1'],
    ],
    [
      'that is added is refused by the limits around it too',
      { ...of(2), routes: { 'POST /login': { ...of(5), combine: 'add' } } },
      ['GET /: 2 of 2', 'POST /login: 0 of 1'],
    ],
    [
      'without a method holds for all that have none of their own, counted together',
      { ...of(9), routes: { '/login': of(2), 'GET /login': of(1) } },
      ['GET /login: 1 of 2', 'POST /login: 1 of 1', 'PUT /login: 1 of 2'],
    ],
    [
      'counts HEAD as GET',
      { ...of(9), routes: { 'GET /search/:q': of(2) } },
      ['HEAD /search/a: 1 of 1', 'GET /search/b: 1 of 2', 'HEAD /search/c: 0 of 1'],
    ],
    [
      'gives way to a more specific one',
      { ...of(9), routes: { '/*': of(3), 'GET /search/:q': of(2), 'GET /search/hot': of(1) } },
      ['GET /search/hot: 1 of 2', 'GET /search/cold: 2 of 3', 'GET /: 2 of 2', 'GET /x: 1 of 2'],
    ],
    [
      'by name is one quota with all that name it',
      {
        ...{ ...of(9), profiles: { dear: of(3) } },
        routes: { 'GET /search/:q': 'dear', 'GET /export': { policies: ['dear'] } },
      },
      ['GET /search/a: 2 of 2', 'GET /export: 1 of 2', 'GET /search/b: 0 of 1', 'GET /: 1 of 1'],
    ],
    [
      'by name at another cost draws on the same quota',
      {
        ...{ ...of(99), profiles: { dear: of(10) } },
        routes: { 'GET /search/:q': 'dear', 'GET /export': { policies: ['dear'], cost: 4 } },
      },
      ['GET /export: 2 of 3', 'GET /search/a: 2 of 3'],
    ],
    [
      'keeps one of several policies around it by naming it',
      {
        policies: [of(5, { name: 'sustained' }), of(2, { name: 'burst', window: '30s' })],
        routes: { 'GET /export': { policies: ['sustained'] } },
      },
      ['GET /export: 3 of 3', 'GET /: 2 of 3', 'GET /export: 0 of 1'],
    ],
    [
      'keeps the only policy around it beside one of its own, by naming it',
      { ...of(3, { name: 'api' }), routes: { 'GET /export': { policies: ['api', of(1)] } } },
      ['GET /export: 1 of 2', 'GET /: 2 of 3'],
    ],
    [
      'with a new cost alone counts the policies around it for the route',
      { ...of(4), routes: { 'GET /export': { cost: 2 } } },
      ['GET /export: 2 of 3', 'GET /: 4 of 5'],
    ],
    [
      'with a new cost alone draws on a named policy around it',
      { ...of(4, { name: 'api' }), routes: { 'GET /export': { cost: 2 } } },
      ['GET /export: 1 of 1', 'GET /: 2 of 3'],
    ],
    [
      'two private ones alike count apart',
      { ...of(9), routes: { 'GET /export': of(1), 'POST /login': of(1) } },
      ['GET /export: 1 of 2', 'POST /login: 1 of 2'],
    ],
  ])('as a table: a rule %s', (_, limits, counted) => {
    const guard = guardOf(limits)
    const found = counted.map((row) => {
      const [method = '', path = '', , , count] = row.split(/:? /)
      const asked = Array.from({ length: Number(count) }, () =>
        now(guard.check(exchange({ method, path }))),
      )
      const passed = asked.filter(({ verdict }) => verdict.action === 'pass')
      return `${method} ${path}: ${passed.length} of ${count}`
    })
    expect(found).toEqual(counted)
  })

  it('that are false match exactly what is written', () => {
    const routes = { '/health': false, '/public/*': false, '*': of(1) } as const
    for (const routing of [exactRouting, { ...lax, lenient: true }]) {
      const at = (path: string) => limitOf(routes, { path }, routing)
      expect(['/health', '/public/a', '/public/a/..b'].map(at)).toEqual(Array(3).fill(undefined))
      expect(['/public/../x', '/public/%2E%2e%2fx', '/public/.'].map(at)).toEqual([1, 1, 1])
      expect(['/HEALTH', '/health/', '//health', '/public'].map(at)).toEqual(Array(4).fill(1))
    }
  })

  it('are relative to a prefix', () => {
    const routes = { '/': of(1), '/login': of(2), '*': of(3) }
    const at = (path: string) =>
      limitOf(routes, { path }, { ...exactRouting, prefix: '/api/:tenant' })

    expect(at('/api/acme/login')).toBe(2)
    expect([at('/api/acme'), at('/api/acme/')]).toEqual([1, 1])
    expect(at('/api/acme/x/y')).toBe(3)
    expect(at('/login')).toBeUndefined()
    expect(limitOf(routes, { path: '/api/' }, { ...lax, prefix: '/api' })).toBe(1)
  })

  it('without a method apply to unknown methods', () => {
    expect(limitOf({ '/x': of(1), 'GET /x': of(2) }, { method: 'BREW', path: '/x' })).toBe(1)
    expect(limitOf({ 'GET /x': of(2) }, { method: 'BREW', path: '/x' })).toBeUndefined()
  })

  it('never throw, whatever a client asks for', () => {
    const guard = guardOf({ routes: { '/:a/:b': of(9), 'POST /x/*': of(9), '/y': false } })
    const methods = fc.constantFrom('GET', 'POST', 'HEAD', 'BREW', '__proto__')
    const text = fc.string()
    const rooted = text.map((path) => `/${path}`)
    const paths = fc.oneof(text, rooted, fc.webPath())
    const law = fc.property(methods, paths, (method, path) => {
      now(guard.check(exchange({ method, path })))
    })
    fc.assert(law)
  })

  const invalid = 'SLUICE_ROUTE_INVALID'
  const optional = { '/x/:a?': of(1), '/x': of(2) }
  it.each<[string, ...Wrong]>([
    ['nothing', { '': of(1) }, /routes: '' is not a route: .*'POST \/login'/, invalid],
    ['no slash', { login: of(1) }, /'login'/, invalid],
    ['a method alone', { POST: of(1) }, /'POST'/, invalid],
    ['lower case', { 'post /x': of(1) }, /write POST/, invalid],
    ['a method that is none', { 'FETCH /x': of(1) }, /'FETCH' is not an HTTP method/, invalid],
    ['HEAD', { 'HEAD /x': of(1) }, /write GET/, invalid],
    ['braces', { '/x{/:y}': of(1) }, /\/users\/:id/, invalid],
    ['a wildcard inside', { '/x/*/y': of(1) }, /Wildcard must be the last/, invalid],
    ['an unsafe pattern', { '/:x((a+)+b)': of(1) }, /not safe/, invalid],
    [
      'the same twice',
      { '/x/:a': of(1), '/x/:b': of(2) },
      /'\/x\/:b' matches the same requests as '\/x\/:a'/,
      'SLUICE_ROUTE_DUPLICATE',
    ],
    ['an optional twice', optional, /'\/x'/, 'SLUICE_ROUTE_DUPLICATE'],
    ['a wrong limit', { '/x': of(-1) }, /routes\['\/x'\]: limit must/, 'SLUICE_LIMIT_INVALID'],
    ['unknown', { '/x': of(1, { burts: 2 }) }, /\['\/x'\].*'burst'/, 'SLUICE_OPTION_UNKNOWN'],
    ['true', { '/x': true }, /routes\['\/x'\] must be options, the name of a policy, or false/],
    ['another name', { '/x': 'expensiv' }, /'expensiv'.*api, expensive/, 'SLUICE_POLICY_UNKNOWN'],
    [
      'an unknown name in a list',
      { '/x': { policies: ['a'] } },
      /routes\['\/x'\]: policies\[0\] names 'a'/,
      'SLUICE_POLICY_UNKNOWN',
    ],
    ['policies that are no list', { '/x': { policies: 'a' } }, /policies must be an array/],
    ['combined', { '/x': of(1, { combine: 'both' }) }, /combine must be one of 'replace', 'add'/],
    ['nothing to add', { '/x': { cost: 2, combine: 'add' } }, /nothing to add/],
    [
      'a name that it is added to',
      { '/x': of(1, { name: 'api', combine: 'add' }) },
      /api/,
      'SLUICE_POLICY_DUPLICATE',
    ],
  ])('cannot be %s', (_, routes, message, code) => {
    const options = { ...of(5), name: 'api', profiles: { expensive: of(2) }, routes }
    expect(making(options)).toThrow(errorOf(message, code))
  })

  it.each<[string, unknown, RegExp]>([
    ['no object', 'x', /^profiles must be a plain object of policies by name/],
    ['a wrong policy', { heavy: { limit: 5, window: '5' } }, /^profiles\.heavy\.window/],
    ['an unknown option', { heavy: of(1, { max: 5 }) }, /^profiles\.heavy: .*'limit'/],
    ['a policy with a name', { heavy: of(1, { name: 'x' }) }, /^profiles\.heavy .* without a name/],
    ['a name that is taken', { api: of(1) }, /^profiles\.api has the same name as a policy/],
    ['a name that no header can carry', { 'na\u00efve': of(1) }, /printable ASCII/],
  ])('profiles cannot be %s', (_, profiles, message) => {
    expect(making({ ...of(5), name: 'api', profiles })).toThrow(message)
  })

  it('cannot count an extended limit or an enclosing penalty in another store', () => {
    const store = memoryStore()
    const own = { ...of(9), name: 'own', store }
    const penalty = { after: 'never' } as const

    const added = { '/x': { ...own, combine: 'add' } } as const
    const place = String.raw`^routes\['/x'\]: store: `
    expect(making({ ...of(2), routes: added })).toThrow(new RegExp(`${place}added policies are`))
    expect(making({ ...of(2), penalty, routes: { '/x': own } })).toThrow(
      new RegExp(`${place}the surrounding penalty`),
    )
    guardOf({ ...of(2), penalty, routes: { '/x': { ...own, penalty: false } } })
    guardOf({ ...of(2), store, penalty, routes: added })
  })

  it('cannot combine a queue with leases by adding it', () => {
    const queue = of(1, { algorithm: 'leaky-bucket', combine: 'add' })
    expect(making({ algorithm: 'concurrency', limit: 5, routes: { '/x': queue } })).toThrow(
      errorOf(/^routes\['\/x'\]/, 'SLUICE_POLICY_COMBINATION'),
    )
  })

  const queue = { limit: 1, window: '1s', algorithm: 'leaky-bucket', key: () => 'ada' } as const

  it('hold their own maximum of requests', () => {
    const guard = guardOf({ ...queue, routes: { '/x': { maxWaiting: 0 } } })
    const ask = (path: string) => now(guard.check(exchange({ path }))).verdict.action
    expect([ask('/x'), ask('/x')]).toEqual(['pass', 'reject'])
  })

  it("together hold at most the limiter's maximum of requests", () => {
    const guard = guardOf({ ...queue, maxWaiting: 1, routes: { '/x': queue } })
    const ask = (path: string) => now(guard.check(exchange({ path }))).verdict.action
    expect([ask('/'), ask('/x'), ask('/')]).toEqual(['pass', 'pass', 'delay'])
    expect(guard.waiting).toBe(1)
    expect(ask('/x')).toBe('reject')
  })
})
