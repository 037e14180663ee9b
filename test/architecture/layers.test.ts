import { describe, expect, it } from 'vitest'
import { filesUnder, packages, readText } from '../support/workspace.ts'
import { importsOf } from './graph.ts'

/** The arrows of the design: each package, and the packages that it may import. */
const arrows: Readonly<Record<string, readonly string[]>> = {
  core: [],
  headers: [],
  client: ['headers'],
  redis: ['core'],
  postgres: ['core'],
  http: ['core', 'headers'],
  express: ['http'],
  fastify: ['http'],
  koa: ['http'],
  fetch: ['http'],
  hono: ['http', 'fetch'],
  nest: ['http', 'express', 'fastify'],
  queue: ['core', 'headers', 'http'],
  outbound: ['core', 'headers'],
  metrics: ['core', 'http'],
  policies: ['core', 'http'],
  admin: ['core', 'http', 'metrics', 'policies', 'queue'],
  testing: ['core', 'headers', 'http', 'queue'],
  cli: ['core', 'http', 'policies', 'redis'],
}

/** Packages that run anywhere, browsers and edge runtimes included. */
const withoutNode = ['core', 'headers', 'client', 'fetch', 'hono']

it('the packages are those of the design', () => {
  const names = Object.keys(arrows).map((name) => `@sluice/${name}`)
  expect(packages().map(({ manifest }) => manifest.name)).toEqual(names.sort())
})

// The compiler refuses deep paths of packages, and relative ones that leave `src` or have no extension.
describe.each(packages())('the package in $folder', ({ folder, manifest }) => {
  const name = folder.slice('packages/'.length)
  const { dependencies, peerDependencies, optionalDependencies, devDependencies } = manifest
  const used = { ...dependencies, ...peerDependencies, ...optionalDependencies, ...devDependencies }
  const allowed = (arrows[name] ?? []).map((other) => `@sluice/${other}`)

  it('depends on packages below it only', () => {
    const ours = Object.keys(used).filter((other) => other.startsWith('@sluice/'))
    expect(ours.filter((other) => !allowed.includes(other))).toEqual([])
  })

  it('imports what it declares, and Node where it needs Node', () => {
    const files = filesUnder(`${folder}/src`, '.ts')
    const named = files
      .flatMap((file) => importsOf(file))
      .filter((specifier) => !specifier.startsWith('.'))
    expect(files).not.toEqual([])
    const isKnown = (specifier: string): boolean =>
      specifier.startsWith('node:') ? !withoutNode.includes(name) : baseName(specifier) in used
    expect(named.filter((specifier) => !isKnown(specifier))).toEqual([])
  })

  it('is referenced by the TypeScript project', () => {
    const references = referencesIn(`${folder}/tsconfig.json`)
    expect(references.sort()).toEqual(allowed.map((other) => other.replace('@sluice', '..')).sort())
    expect(referencesIn('tsconfig.json')).toContain(folder)
  })
})

it('the diagram in the docs shows these arrows, without implied ones', () => {
  const [, picture = ''] = /flowchart TD\n(.+?)```/s.exec(readText('docs/architecture.md')) ?? []
  const drawn = [...picture.matchAll(/^ {2}(\w+) --> (.+)$/gm)].map(([, from = '', to = '']) => [
    from,
    to.split(' & ').sort(),
  ])
  const reached = (from: string): readonly string[] =>
    (arrows[from] ?? []).flatMap((to) => [to, ...reached(to)])
  const direct = Object.entries(arrows).map(([from, all]) => [
    from,
    all.filter((to) => !all.some((over) => reached(over).includes(to))).sort(),
  ])
  expect(Object.fromEntries(drawn)).toEqual(
    Object.fromEntries(direct.filter(([, to]) => to?.length)),
  )
})

it('an import is found in every form', () => {
  const source = `
    import 'a'
    import b, { type Other } from "b"
    import type { C } from 'c'
    export type { D } from 'd'
    export * from 'e'
    type F = import('f').F
    const g = await import(name)`
  expect(importsOf('made-up.ts', source)).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'name'])
})

/** `@scope/name/deep` is of `@scope/name`, `name/deep` of `name`. */
function baseName(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
}

function referencesIn(file: string): string[] {
  const { references = [] }: { references?: { path: string }[] } = JSON.parse(readText(file))
  return references.map(({ path }) => path)
}
