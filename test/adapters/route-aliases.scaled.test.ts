import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { scaled } from '../support/scale.ts'
import { expressSetups, fastifySetups, type Pattern } from './route-apps.ts'
import { sendRaw } from './send-raw.ts'

const list = (texts: string) => texts.split(' ')
/** What some router, somewhere, takes for nothing before a path, or behind it. */
const fronts = [
  ...list('/ // /%2f /%2F \\ /\\ /. /x/.. /%2e /x/%2e%2e'),
  ...list('http://h http://h/ http://h? http://h# http:// foo://h //h'),
]
const ends = [
  ...list('/ // %2f %5c /. /.. ;x ;x=1/ #x /#x ?x /?x=/../ ?? *'),
  ...list('% %zz %c3%28 %00 %2500 %23 %3f %3b \xe9'),
]

/** Ways to write a path that some router, somewhere, takes for the same one. */
function aliases(path: string): readonly string[] {
  const rest = path.slice(1)
  const escaped = `/%${path.charCodeAt(1).toString(16)}${path.slice(2)}`
  return [
    ...[path, path.toUpperCase(), `/${rest.charAt(0).toUpperCase()}${path.slice(2)}`],
    ...[path.replaceAll('/', '//'), escaped, escaped.toUpperCase()],
    path.replace(/[a-z]$/, (last) => `%${last.charCodeAt(0).toString(16)}`),
    ...fronts.map((front) => (/(%2f|\\)$/i.test(front) ? front + rest : front + path)),
    ...ends.map((end) => path + end),
    ...[`HTTP://H${path.toUpperCase()}`, `https://user:password@h:443${path}/`],
  ]
}

/** Every combination of settings; in `npm test` every fifth. */
const setups = [...expressSetups, ...fastifySetups].filter((_, index) => index % scaled(5, 1) === 0)

const limit = 3
const login: Pattern = { method: 'POST', path: '/login' }
const search: Pattern = { method: 'GET', path: '/search/:q' }
const rule = { limit, window: '1h' } as const
const routes = { 'POST /login': rule, 'GET /search/:q': rule }

describe.each(setups)('$name', ({ start }) => {
  it("counts every alias that reaches a route's handler as that route", async () => {
    const reached = { '/login': [] as string[], '/search/:q': [] as string[] }
    const { port, prefix } = await start({ routes }, [login, search], ({ path }, url) => {
      reached[path as keyof typeof reached].push(url)
    })
    const searches = [...aliases(`${prefix}/search/x`), `${prefix}/search/${'x'.repeat(300)}`]
    const counts = () => Object.values(reached).map((urls) => urls.length)

    await sendRaw(port, 'POST', Array(limit).fill(`${prefix}/login`))
    await sendRaw(port, 'GET', Array(limit).fill(`${prefix}/search/y`))
    expect(counts()).toEqual([limit, limit])

    await sendRaw(port, 'POST', aliases(`${prefix}/login`))
    await sendRaw(port, 'HEAD', searches)
    await sendRaw(port, 'GET', searches)
    expect(counts(), JSON.stringify(reached)).toEqual([limit, limit])
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

const written = list(
  '/search/x / /files/a/b /files/ /json/a.json /range/1-2 /users/1 /users/ /caf%C3%A9 /Mixed/x/Case',
)

describe('a path that is written at random', () => {
  const piece = fc.constantFrom(
    ...list('/ // %2f %5c \\ ;x # ? ; %23 %3f %3b %zz % .. . /../ /./ %00 %25 %2525 \xe9 %e9'),
    ...[...list('* : .json - %2e %20 @ | a A'), '\t'],
  )
  const before = fc.constantFrom(
    ...['', '', '', ...list('http://h HTTPS://u@h:1 http://h? http:// foo://h //h /')],
  )
  const change = fc.tuple(fc.constantFrom('insert', 'case', 'escape', 'append'), fc.nat(20), piece)
  const target = fc
    .tuple(before, fc.constantFrom(...written), fc.array(change, { maxLength: 4 }))
    .map(([start, path, changes]) => ({ start, path: changes.reduce(changed, path) }))

  it.each([
    ...expressSetups.filter((_, index) => index % 5 === 0),
    ...fastifySetups.filter((_, index) => index % 9 === 0),
  ])('never reaches a handler with limit 0: $name', async ({ start }) => {
    const nobody = { limit: 0, window: '1h' } as const
    const rules = patterns.map(({ method, path }) => [`${method} ${path}`, nobody] as const)
    const reached: string[] = []
    const limits = { routes: Object.fromEntries(rules) }
    const { port, prefix } = await start(limits, patterns, (_, url) => reached.push(url))
    const targets = fc.array(target, { minLength: 20, maxLength: 40 })
    const law = fc.asyncProperty(targets, async (drawn) => {
      const urls = drawn.map(({ start: front, path }) => `${front}${prefix}${path}`)
      await sendRaw(port, 'GET', urls)
      expect(reached).toEqual([])
    })
    await fc.assert(law, { numRuns: scaled(2, 8) })
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
  const freed = { '/health': false, '/public/*': false } as const
  const closed = { limit: 0, window: '1h', routes: freed } as const

  it.each(setups.filter((_, index) => index % 3 === 0))(
    'opens no way to another route: $name',
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
    'does not match dot segments, which a server behind it may resolve: $name',
    async ({ start }) => {
      const reached: string[] = []
      const { port, prefix } = await start(closed, open, (_, url) => reached.push(url))
      const dotted = list('../login x/../../login %2e%2e/login ..%2flogin ..\\login . x/..')
      const rests = [...dotted, 'a.b/..c'].map((rest) => `${prefix}/public/${rest}`)
      await sendRaw(port, 'GET', rests)

      expect(reached).toEqual([`${prefix}/public/a.b/..c`])
    },
  )
})
