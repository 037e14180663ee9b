import { join } from 'node:path'
import { countOption, type Option, type OptionsOf, readOptions } from '@sluice/core'
import ts from '@typescript/typescript6'
import { describe, expect, it } from 'vitest'
import { GuardTable } from '../../packages/http/src/options/option-table.ts'
import { AppTable, optionsOf as optionsOfOwner } from '../../packages/http/src/options/options.ts'
import { readText, root } from '../support/workspace.ts'

/** Where an option may stand, as the page calls it, with the types that say so. */
const places = {
  policy: ['http#HttpPolicyOptions'],
  app: [
    'express#RateLimitOptions',
    'fastify#RateLimitPluginOptions',
    'fetch#RateLimitOptions',
    'hono#RateLimitOptions',
    'nest#RateLimitModuleOptions',
  ],
  route: ['http#RouteOverride'],
  limiter: ['core#LimiterOptions'],
}

/** The types whose options the other tables of the page list, by heading. */
const tables: Readonly<Record<string, readonly string[]>> = {
  Penalties: ['http#GuardPenalty'],
  Schedules: ['http#ScheduleOptions'],
  'Rules of a schedule': ['http#ScheduleRule'],
  'Adaptive limits': ['http#AdaptiveOptions'],
  'CPU signal': ['http#CpuOptions'],
  'Load shedding': ['http#ShedOptions'],
  Lists: ['http#AccessListOptions'],
  Addresses: ['http#IpOptions'],
  Credentials: ['http#ApiKeyOptions'],
  'Memory store': ['core#MemoryStoreOptions'],
  'Redis store': ['redis#RedisStoreOptions'],
  'Postgres store': ['postgres#PostgresStoreOptions'],
  'Regional store': ['core#RegionalStoreOptions'],
  Batches: ['redis#BatchOptions'],
  'Calls of a limiter': ['core#PeekOptions', 'core#RefundOptions'],
  Queues: ['queue#QueueOptions'],
  Brokers: [
    'queue#MemoryBrokerOptions',
    'queue#BullmqBrokerOptions',
    'queue#RabbitmqBrokerOptions',
  ],
  Admissions: ['queue#AdmissionOptions'],
  'Idempotency keys': ['queue#IdempotencyOptions'],
  'Status monitor': ['queue#StatusMonitorOptions'],
  Workers: ['queue#WorkerOptions'],
  Outbound: ['outbound#OutboundOptions'],
  'Outbound calls': ['outbound#CallOptions'],
  'Audit stream': ['outbound#AuditStreamOptions'],
  Clients: ['client#ClientOptions'],
  Metrics: ['metrics#MetricsOptions'],
  'Busiest keys': ['metrics#TopKeysOptions'],
  'Denial log': ['metrics#DenialLogOptions'],
  'Waiting for a job': ['client#WaitForOptions'],
}

/** Tables of types that have no name of their own. */
const unnamed = { Backoff: ['base', 'max'] }

interface Row {
  readonly option: string
  readonly cells: readonly string[]
}

const rowsOf = readTables(readText('docs/options.md'))
/** Options that do not fit together, which the compiler has messages for. */
const mistakes = join(root, 'test/examples/mistakes.ts')
const program = ts.createProgram([...entries(), mistakes], ...compilerOptions())
const optionsOf = optionsBy(program.getTypeChecker())

describe('the message of the compiler', () => {
  it('asks for the limit that is missing, and leads from a text to durationMs', () => {
    const [missing, text] = program
      .getSemanticDiagnostics(program.getSourceFile(mistakes))
      .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))

    expect(missing).toMatch(/Property 'limit' is missing/)
    expect(text).toMatch(/^Type 'string' is not assignable to type 'Duration \| DurationMs/)
  })
})

describe('docs/options.md', () => {
  it.each(Object.keys(tables))('lists every option, and nothing else: %s', (heading) => {
    expect(names(heading)).toEqual([...optionsOf(tables[heading] ?? [])].sort())
  })

  it('lists every option of policies and guards, with the places where each may stand', () => {
    const policies = rowsOf.get('Policies') ?? []
    const guards = rowsOf.get('Limiters and guards') ?? []
    const inBoth = policies.filter(({ option }) => guards.some((row) => row.option === option))
    for (const row of policies) {
      const here = placesOf(row.option).filter((place) => !inBoth.includes(row) || isOwn(place))
      expect([row.option, row.cells.at(-1)]).toEqual([row.option, here.join(', ')])
    }
    for (const { option, cells } of guards) {
      const here = placesOf(option).filter((place) => place !== 'policy')
      expect([option, cells.at(-1)]).toEqual([option, here.join(', ')])
    }
    const listed = new Set([...policies, ...guards].map(({ option }) => option))
    const all = optionsOf(Object.values(places).flat())
    expect([...all].filter((option) => !listed.has(option))).toEqual([])
  })

  it('says of each option what it does, and leads to each of its tables', () => {
    for (const [heading, rows] of rowsOf) {
      for (const { option, cells } of rows) {
        expect(cells[3], `${heading}: ${option}`).toMatch(/^.{10,}[.)]$/)
        expect(new Set(rows.map((row) => row.option)).size, heading).toBe(rows.length)
      }
    }
    expect([...rowsOf.keys()].sort()).toEqual(
      ['Policies', 'Limiters and guards', ...Object.keys(tables), ...Object.keys(unnamed)].sort(),
    )
    for (const [heading, options] of Object.entries(unnamed))
      expect(names(heading)).toEqual(options)
  })
})

describe('the options of a guard', () => {
  const declarations = ['option-table', 'options']
    .map((name) => readText(`packages/http/src/options/${name}.ts`))
    .join('\n')
    .replace(/^interface KeyedPenalty[^}]*\}/m, '')

  it('are 52 at most, beside those of a policy file and of a framework', () => {
    expect(optionsOfOwner('guard').length).toBeLessThanOrEqual(52)
  })

  it('are declared in one place each: the sentence, the type, the check and the default', () => {
    for (const name of Object.keys(new AppTable())) {
      const entries = declarations.match(new RegExp(`^  ${name}\\??:.*$`, 'gm')) ?? []
      expect(entries, name).toEqual([expect.stringMatching(/\?: Option</)])
    }
  })

  it('have the default that their docstring and the page tell', () => {
    const rows = rowsOf.get('Limiters and guards') ?? []
    const checked = Object.entries(new GuardTable()).flatMap(([name, check]) => {
      const [, told] =
        new RegExp(`@default ([^\\n]*?)(?: \\*/|\\n   \\*/)\\n  ${name}\\?:`).exec(declarations) ??
        []
      const value: unknown = check(undefined, name)
      if (told === undefined || value === undefined) return []
      const cell = rows.find(({ option }) => option === name)?.cells[1] ?? ''
      const [onPage, inCode] = [cell, told].map((text) => text.replace(/[`,_ ]/g, ''))
      const inForce = JSON.stringify(value).replace(/"/g, "'").replace(/[,_ ]/g, '')
      expect([name, onPage, inCode]).toEqual([name, inForce, inForce])
      return [name]
    })
    expect(checked.sort()).toEqual(
      [
        ...['exposeHeaders', 'headers', 'hideOnRedirect', 'maxWaiting', 'onMissingKey'],
        ...['retryJitter', 'statusCode'],
      ].sort(),
    )
  })

  it('grow by one entry of a table, which is all that an option needs', () => {
    class Table extends GuardTable<object> {
      spare?: Option<number, number> = countOption(3, { min: 1, max: 9 })
    }
    const read = (options: OptionsOf<Table>) => readOptions(new Table(), options, 'rateLimit').spare

    expect([read({}), read({ spare: 5 })]).toEqual([3, 5])
    expect(() => read({ spare: 10 })).toThrow(
      /^spare must be a whole number from 1 to 9, but is 10/,
    )
    expect(() => read(JSON.parse('{ "spar": 1 }'))).toThrow(
      /no option 'spar' \(did you mean 'spare'/,
    )
    // @ts-expect-error: the entry is the type too
    expect(() => read({ spare: 'many' })).toThrow(/^spare must be/)
  })
})

describe.each([
  'options',
  'limits',
  'routes',
  'keys',
  'observing',
  'postgres',
  'redis',
  'queues',
  'clients',
  'outbound',
])('docs/%s.md', (name) => {
  it('leads somewhere with each of its links', () => {
    for (const [, file = '', anchor] of readText(`docs/${name}.md`).matchAll(
      /\]\(((?!https?:)[^)#\s]*)(?:#([^)\s]+))?\)/g,
    )) {
      const page = readText(join('docs', file === '' ? `${name}.md` : file))
      if (anchor !== undefined) expect(anchorsOf(page), `${file}#${anchor}`).toContain(anchor)
    }
  })
})

function names(heading: string): readonly string[] {
  return (rowsOf.get(heading) ?? []).map(({ option }) => option).sort()
}

/** Of an option that a policy and a guard have, the table of policies tells what a policy alone may do. */
function isOwn(place: string): boolean {
  return place === 'policy' || place === 'limiter'
}

function placesOf(option: string): string[] {
  return Object.entries(places).flatMap(([place, types]) =>
    optionsOf(types).has(option) ? [place] : [],
  )
}

/** The tables of a page whose first column is `option`, by the heading above. */
function readTables(page: string): ReadonlyMap<string, readonly Row[]> {
  const found = new Map<string, Row[]>()
  let heading = ''
  let isTable = false
  for (const line of page.split('\n')) {
    heading = /^#{2,3} (.*)/.exec(line)?.[1] ?? heading
    if (!line.startsWith('|')) isTable = false
    if (line.startsWith('| option ')) isTable = true
    const [option, ...cells] = line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim())
    const name = /^`(\w+)`$/.exec(option ?? '')?.[1]
    if (isTable && name !== undefined) {
      found.set(heading, [...(found.get(heading) ?? []), { option: name, cells }])
    }
  }
  return found
}

function anchorsOf(page: string): readonly string[] {
  return [...page.matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  )
}

/** The sources of all entries of a package. */
function entriesOf(name = ''): readonly string[] {
  const { exports }: { exports: object } = JSON.parse(readText(`packages/${name}/package.json`))
  return Object.values(exports).flatMap((entry: unknown) => {
    const source =
      typeof entry === 'object' && entry ? Reflect.get(entry, '@sluice/source') : undefined
    return typeof source === 'string' ? [join(root, 'packages', name, source)] : []
  })
}

function entries(): readonly string[] {
  const types = [...Object.values(places), ...Object.values(tables)].flat()
  return [...new Set(types.map((type) => type.split('#')[0]))].flatMap(entriesOf)
}

function compilerOptions(): [ts.CompilerOptions, ts.CompilerHost] {
  const options = {
    customConditions: ['@sluice/source'],
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    target: ts.ScriptTarget.ES2023,
    allowImportingTsExtensions: true,
    noEmit: true,
    skipLibCheck: true,
    strict: true,
    types: [],
  }
  const host = ts.createCompilerHost(options)
  const { readFile, fileExists } = host
  const text = `import { rateLimit } from '@sluice/express'
    rateLimit({ window: '1m' })
    rateLimit({ limit: 5, window: String(1) })`
  host.fileExists = (path) => path === mistakes || fileExists(path)
  host.readFile = (path) => (path === mistakes ? text : readFile(path))
  return [options, host]
}

/** Asks the compiler for the properties of types, those of each member of a union: `package#Name`. */
function optionsBy(checker: ts.TypeChecker): (types: readonly string[]) => ReadonlySet<string> {
  const sources = (name = '') => join(root, 'packages', name, 'src')
  const propertiesOf = (type: string): string[] => {
    const [folder, name] = type.split('#')
    const declaration = program
      .getSourceFiles()
      .filter(({ fileName }) => fileName.startsWith(sources(folder)))
      .flatMap(({ statements }) => [...statements])
      .filter((one) => ts.isInterfaceDeclaration(one) || ts.isTypeAliasDeclaration(one))
      .find((one) => one.name.text === name)
    if (!declaration) throw new Error(`there is no ${type}`)
    const found = checker.getTypeAtLocation(declaration)
    const members = found.isUnion() ? found.types : [found]
    return members.flatMap((member) => checker.getPropertiesOfType(member).map((one) => one.name))
  }
  return (wanted) => new Set(wanted.flatMap(propertiesOf))
}
