import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { scaled } from '../support/scale.ts'
import { expressSetups, fastifySetups, type Pattern } from './route-apps.ts'
import { sendRaw } from './send-raw.ts'

/** Ways to write a path that some router, somewhere, takes for the same one. */
function aliases(path: string): readonly string[] {
  const escaped = `/%${path.charCodeAt(1).toString(16)}${path.slice(2)}`
  return [
    path,
    path.toUpperCase(),
    `/${path.slice(1, 2).toUpperCase()}${path.slice(2)}`,
    `${path}/`,
    `${path}//`,
    `/${path}`,
    `//${path}`,
    path.replaceAll('/', '//'),
    `/%2f${path.slice(1)}`,
    `/%2F${path.slice(1)}`,
    `${path}%2f`,
    `${path}%5c`,
    `\\${path.slice(1)}`,
    `/\\${path.slice(1)}`,
    escaped,
    escaped.toUpperCase(),
    path.replace(/[a-z]$/, (last) => `%${last.charCodeAt(0).toString(16)}`),
    `/.${path}`,
    `/x/..${path}`,
    `/%2e${path}`,
    `/x/%2e%2e${path}`,
    `${path}/.`,
    `${path}/..`,
    `http://h${path}`,
    `HTTP://H${path.toUpperCase()}`,
    `https://user:password@h:443${path}/`,
    `http://h/${path}`,
    `http://h?${path}`,
    `http://h#${path}`,
    `http://${path}`,
    `foo://h${path}`,
    `//h${path}`,
    `${path};x`,
    `${path};x=1/`,
    `${path}#x`,
    `${path}/#x`,
    `${path}?x`,
    `${path}/?x=/../`,
    `${path}??`,
    `${path}%`,
    `${path}%zz`,
    `${path}%c3%28`,
    `${path}%00`,
    `${path}%2500`,
    `${path}%23`,
    `${path}%3f`,
    `${path}%3b`,
    `${path}\xe9`,
    `${path}*`,
  ]
}

/** Every combination of settings; in `npm test` every fourth. */
const setups = [...expressSetups, ...fastifySetups].filter((_, index) => index % scaled(4, 1) === 0)

const limit = 3
const login: Pattern = { method: 'POST', path: '/login' }
const search: Pattern = { method: 'GET', path: '/search/:q' }
const routes = {
  'POST /login': { limit, window: '1h' },
  'GET /search/:q': { limit, window: '1h' },
} as const

describe.each(setups)('$name', ({ start }) => {
  it('counts every alias of a route that its handler is reached by as the route', async () => {
    const reached = new Map<Pattern, string[]>([
      [login, []],
      [search, []],
    ])
    const { port, prefix } = await start({ routes }, [login, search], (pattern, url) => {
      reached.get(pattern)?.push(url)
    })
    const logins = aliases(`${prefix}/login`)
    const searches = [...aliases(`${prefix}/search/x`), `${prefix}/search/${'x'.repeat(300)}`]

    await sendRaw(port, 'POST', Array(limit).fill(`${prefix}/login`))
    await sendRaw(port, 'GET', Array(limit).fill(`${prefix}/search/y`))
    expect([...reached.values()].map((urls) => urls.length)).toEqual([limit, limit])

    await sendRaw(port, 'POST', logins)
    await sendRaw(port, 'HEAD', searches)
    await sendRaw(port, 'GET', searches)
    expect(reached.get(login)).toHaveLength(limit)
    expect(reached.get(search)).toHaveLength(limit)
  })
})

const patterns: readonly Pattern[] = [
  login,
  search,
  { method: 'GET', path: '/' },
  { method: 'GET', path: '/files/*', express5: '/files/*rest' },
  { method: 'GET', path: '/json/:name.json' },
  { method: 'GET', path: '/range/:from-:to' },
  { method: 'GET', path: '/users/:id?', express5: '/users{/:id}' },
  { method: 'GET', path: '/caf%C3%A9' },
  { method: 'GET', path: '/Mixed/:x/Case' },
]

const written: readonly string[] = [
  '/search/x',
  '/',
  '/files/a/b',
  '/files/',
  '/json/a.json',
  '/range/1-2',
  '/users/1',
  '/users/',
  '/caf%C3%A9',
  '/Mixed/x/Case',
]

describe('a path that is written at random', () => {
  const piece = fc.constantFrom(
    ...[
      '/',
      '//',
      '%2f',
      '%5c',
      '\\',
      ';x',
      '#',
      '?',
      ';',
      '%23',
      '%3f',
      '%3b',
      '%zz',
      '%',
      '..',
      '.',
      '/../',
      '/./',
    ],
    ...[
      '%00',
      '%25',
      '%2525',
      '\xe9',
      '%e9',
      '*',
      ':',
      '.json',
      '-',
      '%2e',
      '%20',
      '@',
      '|',
      'a',
      'A',
      '\t',
    ],
  )
  const before = fc.constantFrom(
    '',
    '',
    '',
    'http://h',
    'HTTPS://u@h:1',
    'http://h?',
    'http://',
    'foo://h',
    '//h',
    '/',
  )
  const change = fc.tuple(fc.constantFrom('insert', 'case', 'escape', 'append'), fc.nat(20), piece)
  const target = fc
    .tuple(before, fc.constantFrom(...written), fc.array(change, { maxLength: 4 }))
    .map(([start, path, changes]) => ({ start, path: changes.reduce(changed, path) }))

  it.each([
    ...expressSetups.filter((_, index) => index % 5 === 0),
    ...fastifySetups.filter((_, index) => index % 9 === 0),
  ])('never reaches a handler whose rule admits nobody: $name', async ({ start }) => {
    const closed = Object.fromEntries(
      patterns.map(({ method, path }) => [
        `${method} ${path}`,
        { limit: 0, window: '1h' } as const,
      ]),
    )
    const reached: string[] = []
    const { port, prefix } = await start({ routes: closed }, patterns, (_, url) =>
      reached.push(url),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(target, { minLength: 20, maxLength: 40 }), async (targets) => {
        reached.length = 0
        await sendRaw(
          port,
          'GET',
          targets.map(({ start: front, path }) => `${front}${prefix}${path}`),
        )
        expect(reached).toEqual([])
      }),
      { numRuns: scaled(2, 8) },
    )
  })

  function changed(path: string, [how, where, text]: [string, number, string]): string {
    const at = where % (path.length + 1)
    const char = path.charAt(at)
    const rest = path.slice(at + 1)
    if (how === 'append') return path + text
    if (how === 'insert' || char === '') return path.slice(0, at) + text + path.slice(at)
    if (how === 'escape') {
      return `${path.slice(0, at)}%${char.charCodeAt(0).toString(16).padStart(2, '0')}${rest}`
    }
    const other = char === char.toUpperCase() ? char.toLowerCase() : char.toUpperCase()
    return path.slice(0, at) + other + rest
  }
})

describe('a rule that is false', () => {
  const open: readonly Pattern[] = [
    { method: 'GET', path: '/health' },
    { method: 'GET', path: '/public/*', express5: '/public/*rest' },
  ]
  const guarded: Pattern = { method: 'GET', path: '/:page' }
  const nested: Pattern = { method: 'GET', path: '/:area/:page' }
  const closed = {
    limit: 0,
    window: '1h',
    routes: { '/health': false, '/public/*': false },
  } as const

  it.each(setups.filter((_, index) => index % 3 === 0))(
    'is no way to a route beside it: $name',
    async ({ start }) => {
      const reached: string[] = []
      const { port, prefix } = await start(closed, [...open, guarded, nested], (pattern, url) => {
        if (pattern === guarded || pattern === nested) reached.push(url)
      })
      const all = ['/health', '/public/x'].flatMap((path) => aliases(`${prefix}${path}`))
      await sendRaw(port, 'GET', all)

      expect(reached).toEqual([])
    },
  )

  it.each(setups.filter((_, index) => index % 7 === 0))(
    'does not stand for a path with dot segments, which something behind it may resolve: $name',
    async ({ start }) => {
      const reached: string[] = []
      const { port, prefix } = await start(closed, open, (_, url) => reached.push(url))
      const dotted = [
        '../login',
        'x/../../login',
        '%2e%2e/login',
        '..%2flogin',
        '..\\login',
        '.',
        'x/..',
      ]
      await sendRaw(port, 'GET', [
        ...dotted.map((rest) => `${prefix}/public/${rest}`),
        `${prefix}/public/a.b/..c`,
      ])

      expect(reached).toEqual([`${prefix}/public/a.b/..c`])
    },
  )
})
