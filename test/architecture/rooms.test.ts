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

/** The folders of a package from the ground up: none imports one after it. */
const floors: Readonly<Record<string, string>> = {
  'packages/core':
    'runtime options waiting algorithms model policy engine memory-store observers ledger resilience deciders reserve limiter regions',
  'packages/redis':
    'model keys clients replies scripts/generated scripts calls cluster fleet store',
  'packages/http':
    'request keys access limits options responses routes lifecycle stages guard adapter',
  'packages/queue':
    '. brokers brokers/memory brokers/redis brokers/bullmq brokers/rabbitmq worker http',
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
    const order = floors[folder]?.split(' ').map((name) => posix.join(folder, 'src', name)) ?? []
    expect([...folders.keys()].sort()).toEqual([...order].sort())
    const upward = [...folders].flatMap(([from, targets]) =>
      targets
        .filter((to) => order.indexOf(to) > order.indexOf(from))
        .map((to) => `${from} → ${to}`),
    )
    expect(upward).toEqual([])
  })

  it.runIf(maxImports[folder])('import few others', () => {
    const entries = entriesOf(folder, manifest)
    const knowing = [...graph].filter(
      ([file, targets]) =>
        !entries.includes(file) && targets.length > (maxImports[folder] ?? targets.length),
    )
    expect(knowing.map(([file, targets]) => `${file}: ${targets.length}`)).toEqual([])
  })

  it.skipIf(folder in withCrumbs)('are not fragments of the only file that imports them', () => {
    const crumbs = crumbsIn(graph, linesOf)
    const isOwn = (file: string): boolean => ownFiles.some(([end]) => file.endsWith(end))
    expect(crumbs.filter((file) => !isOwn(file))).toEqual([])
  })
})

it('the checks find circles, imports across folders, and short files with one importer alone', () => {
  const graphFrom = (files: Readonly<Record<string, readonly string[]>>): Graph =>
    new Map(Object.entries(files))
  expect(circlesIn(graphFrom({ a: ['b', 'c'], b: ['d'], c: ['d'], d: [] }))).toEqual([])
  const circles = graphFrom({ a: ['a'], b: ['c'], c: ['d'], d: ['c'] })
  expect(circlesIn(circles)).toEqual(['a → a', 'c → d → c'])

  const files = { 'a/one': ['a/two', 'b/one'], 'b/one': ['c/one'], index: ['a/one', 'c/one'] }
  const folders = [...foldersOf(graphFrom(files), ['index'])]
  expect(folders).toEqual(Object.entries({ a: ['b'], b: ['c'] }))

  const sized = { long: [], shared: [], crumb: [], a: ['long', 'shared', 'crumb'], b: ['shared'] }
  const crumbs = crumbsIn(graphFrom(sized), (file) => (file === 'long' ? 25 : 24))
  expect(crumbs).toEqual(['crumb'])
})

function entriesOf(folder: string, manifest: Manifest): readonly string[] {
  const commands = Object.values(manifest.bin ?? {}).map((file) => posix.basename(file, '.js'))
  return [...entryNames(manifest), ...commands].map((name) => `${folder}/src/${name}.ts`)
}
