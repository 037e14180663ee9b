import { posix } from 'node:path'
import { describe, expect, it } from 'vitest'
import { entryNames } from '../packages/published-manifest.ts'
import { type Manifest, packages, readText } from '../support/workspace.ts'
import { circlesIn, crumbsIn, foldersOf, type Graph, graphOf } from './graph.ts'

/** Packages with short files that one other file alone imports, and why. */
const withCrumbs: Readonly<Record<string, string>> = {
  'packages/headers': 'a dialect has a file of its own, however short',
}

/** Files that have to stand alone, by the ends of their paths, and why. */
const ownFiles: readonly (readonly [end: string, reason: string])[] = [
  ['/src/read-lua.ts', 'the build writes the texts of the scripts in its place'],
  ['/src/read-page.ts', 'the build writes the files of the page in its place'],
  ['/src/read-sql.ts', 'the build writes the texts of the migration in its place'],
]

/** The folders of a package from the ground up: none imports one above it. */
const floors: Readonly<Record<string, readonly string[]>> = {
  'packages/core': [
    'runtime',
    'options',
    'waiting',
    'algorithms',
    'model',
    'policy',
    'engine',
    'memory-store',
    'observers',
    'ledger',
    'resilience',
    'deciders',
    'reserve',
    'limiter',
    'regions',
  ],
  'packages/redis': [
    'model',
    'keys',
    'clients',
    'replies',
    'scripts/generated',
    'scripts',
    'calls',
    'cluster',
    'fleet',
    'store',
  ],
  'packages/http': [
    'request',
    'keys',
    'access',
    'limits',
    'options',
    'responses',
    'routes',
    'lifecycle',
    'stages',
    'guard',
    'adapter',
  ],
  'packages/queue': [
    '.',
    'brokers',
    'brokers/memory',
    'brokers/redis',
    'brokers/bullmq',
    'brokers/rabbitmq',
    'worker',
    'http',
  ],
}

/** The most files that one file of a package imports, entries exempt. */
const maxImports: Readonly<Record<string, number>> = { 'packages/core': 12 }

const linesOf = (file: string): number => readText(file).trimEnd().split('\n').length

describe.each(packages())('the files of $folder', ({ folder, manifest }) => {
  const graph = graphOf(folder)
  const folders = foldersOf(graph, entriesOf(folder, manifest))

  it('import each other in one direction', () => {
    expect(circlesIn(graph)).toEqual([])
  })

  it('import across folders in one direction', () => {
    expect(circlesIn(folders)).toEqual([])
  })

  it.runIf(floors[folder])('import no folder above theirs', () => {
    const order = (floors[folder] ?? []).map((name) => posix.join(folder, 'src', name))
    expect([...folders.keys()].sort()).toEqual([...order].sort())
    const upward = [...folders].flatMap(([from, targets]) =>
      targets
        .filter((to) => order.indexOf(to) > order.indexOf(from))
        .map((to) => `${from} → ${to}`),
    )
    expect(upward).toEqual([])
  })

  it.runIf(maxImports[folder])('know few others', () => {
    const entries = entriesOf(folder, manifest)
    const knowing = [...graph].filter(
      ([file, targets]) =>
        !entries.includes(file) && targets.length > (maxImports[folder] ?? targets.length),
    )
    expect(knowing.map(([file, targets]) => `${file}: ${targets.length}`)).toEqual([])
  })

  it.skipIf(folder in withCrumbs)('are no crumbs of the one file that imports them', () => {
    const crumbs = crumbsIn(graph, linesOf)
    const isOwn = (file: string): boolean => ownFiles.some(([end]) => file.endsWith(end))
    expect(crumbs.filter((file) => !isOwn(file))).toEqual([])
  })
})

describe('the check of circles', () => {
  const graphFrom = (files: Readonly<Record<string, readonly string[]>>): Graph =>
    new Map(Object.entries(files))

  it('finds none where imports go one way, by however many ways', () => {
    expect(circlesIn(graphFrom({ a: ['b', 'c'], b: ['d'], c: ['d'], d: [] }))).toEqual([])
  })

  it('finds a circle of two, of three, and of a file that imports itself', () => {
    expect(circlesIn(graphFrom({ a: ['b'], b: ['a'] }))).toEqual(['a → b → a'])
    expect(circlesIn(graphFrom({ a: ['b'], b: ['c'], c: ['b'] }))).toEqual(['b → c → b'])
    expect(circlesIn(graphFrom({ a: ['a'] }))).toEqual(['a → a'])
  })

  it('counts imports of types, and of what is exported again', () => {
    const files = [...graphOf('packages/queue')].filter(([file]) => file.endsWith('src/index.ts'))
    const [[, targets = []] = []] = files
    expect(targets).toContain('packages/queue/src/job.ts')
  })
})

describe('the folders of a package', () => {
  it('are joined by the imports of their files, and not by those of entries', () => {
    const graph: Graph = new Map([
      ['a/one', ['a/two', 'b/one']],
      ['a/two', []],
      ['b/one', ['c/one']],
      ['index', ['a/one', 'c/one']],
    ])
    const folders = foldersOf(graph, ['index'])
    expect([...folders]).toEqual([
      ['a', ['b']],
      ['b', ['c']],
    ])
  })
})

describe('the check of crumbs', () => {
  it('finds short files with one importer alone', () => {
    const graph: Graph = new Map([
      ['long', []],
      ['shared', []],
      ['crumb', []],
      ['a', ['long', 'shared', 'crumb']],
      ['b', ['shared', 'a']],
    ])
    expect(crumbsIn(graph, (file) => (file === 'long' ? 25 : 24))).toEqual(['crumb', 'a'])
  })
})

function entriesOf(folder: string, manifest: Manifest): readonly string[] {
  const commands = Object.values(manifest.bin ?? {}).map((file) => posix.basename(file, '.js'))
  return [...entryNames(manifest), ...commands].map((name) => `${folder}/src/${name}.ts`)
}
