import { describe, expect, it } from 'vitest'
import { filesUnder, type Manifest, packages, readText } from '../support/workspace.ts'
import { findImports } from './find-imports.ts'
import { arrows, judgeImport, judgeManifest } from './layers.ts'

describe('the packages', () => {
  it('are those of the design', () => {
    expect(packages().map(({ manifest }) => manifest.name)).toEqual(
      Object.keys(arrows)
        .map((name) => `@sluice/${name}`)
        .sort(),
    )
  })

  it.each(packages())('import downward only: $folder', ({ folder, manifest }) => {
    const files = filesUnder(`${folder}/src`, '.ts')
    expect(files).not.toEqual([])
    const problems = files.flatMap((file) =>
      findImports(file, readText(file)).map(({ specifier }) =>
        judgeImport({ file, specifier, manifest }),
      ),
    )
    expect(problems.filter((problem) => problem !== undefined)).toEqual([])
  })

  it.each(packages())('depend downward only: $folder', ({ folder, manifest }) => {
    expect(judgeManifest(folder, manifest)).toEqual([])
  })

  it.each(packages())('are referenced by the TypeScript project: $folder', ({ folder }) => {
    const references = readJson(`${folder}/tsconfig.json`).references ?? []
    const name = folder.slice('packages/'.length)
    expect(references.map(({ path }) => path).sort()).toEqual(
      (arrows[name] ?? []).map((dependency) => `../${dependency}`).sort(),
    )
    expect(readJson('tsconfig.json').references).toContainEqual({ path: folder })
  })
})

it('the picture of the docs draws these arrows, without those that a longer way implies', () => {
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

describe('judgeImport', () => {
  const manifest: Manifest = {
    name: '@sluice/http',
    dependencies: { '@sluice/core': '1.0.0', 'ipaddr.js': '^2.0.0' },
    peerDependencies: { '@types/node': '*' },
  }
  const judge = (file: string, specifier: string) => judgeImport({ file, specifier, manifest })

  it.each([
    ['packages/http/src/guard.ts', '@sluice/core'],
    ['packages/http/src/guard.ts', '@sluice/core/backend'],
    ['packages/koa/src/context.ts', '@sluice/http/adapter'],
    ['packages/http/src/guard.ts', './verdict.ts'],
    ['packages/http/src/keys/ip.ts', '../guard.ts'],
    ['packages/http/src/guard.ts', 'ipaddr.js'],
    ['packages/http/src/guard.ts', 'ipaddr.js/deep'],
    ['packages/http/src/guard.ts', 'node:http'],
  ])('lets %s import %s', (file, specifier) => {
    expect(judge(file, specifier)).toBeUndefined()
  })

  it.each([
    ['upward', 'packages/core/src/limiter.ts', '@sluice/http', /may import no package/],
    ['sideways', 'packages/express/src/index.ts', '@sluice/fastify', /express may import http/],
    ['itself', 'packages/http/src/guard.ts', '@sluice/http', /may import core, headers/],
    ['over a layer', 'packages/express/src/index.ts', '@sluice/core', /may import http/],
    ['a deep path', 'packages/http/src/guard.ts', '@sluice/core/src/key.ts', /through its entries/],
    ['a foreign file', 'packages/http/src/guard.ts', '../../core/src/key.ts', /leaves packages/],
    ['a file beside src', 'packages/http/src/guard.ts', '../test/a.ts', /leaves packages/],
    ['no extension', 'packages/http/src/guard.ts', './verdict', /carry \.ts/],
    ['a built-in in core', 'packages/core/src/limiter.ts', 'node:crypto', /no Node built-ins/],
    ['a bare built-in in core', 'packages/core/src/limiter.ts', 'crypto', /no Node built-ins/],
    ['a built-in in headers', 'packages/headers/src/parse.ts', 'node:util', /no Node built-ins/],
    ['a bare built-in', 'packages/http/src/guard.ts', 'http', /write node:http/],
    ['an undeclared library', 'packages/http/src/guard.ts', 'left-pad', /does not declare/],
    ['an absolute path', 'packages/http/src/guard.ts', '/etc/passwd', /neither absolute/],
    ['a computed name', 'packages/http/src/guard.ts', '(computed)', /computed/],
  ])('refuses %s', (_, file, specifier, reason) => {
    expect(judge(file, specifier)).toMatch(reason)
  })
})

describe('judgeManifest', () => {
  it('refuses dependencies that the design does not draw, of every kind', () => {
    const manifest: Manifest = {
      name: '@sluice/headers',
      dependencies: { '@sluice/core': '1.0.0' },
      devDependencies: { '@sluice/http': '1.0.0' },
    }
    expect(judgeManifest('packages/headers', manifest)).toHaveLength(2)
  })

  it('refuses a package that the design does not know', () => {
    expect(judgeManifest('packages/misc', { name: '@sluice/misc' })).toHaveLength(1)
  })
})

describe('findImports', () => {
  it('sees every way of naming a module', () => {
    const source = `
      import 'a'
      import b, { type Other } from "b"
      import type { C } from 'c'
      export { d } from 'd'
      export type { E } from 'e'
      export * from 'f'
      const g = await import('g')
      type H = import('h').H
      const i = require('i')
      import j = require('j')
      const k = await import(\`./\${g}\`)
      const text = "import 'not this'" // import 'nor this'
    `
    expect(findImports('made-up.ts', source).map(({ specifier }) => specifier)).toEqual([
      ...'abcdefghij',
      '(computed)',
    ])
  })

  it('refuses a source that does not parse', () => {
    expect(() => findImports('made-up.ts', 'import {')).toThrow(/does not parse/)
  })
})

function readJson(path: string): { references?: { path: string }[] } {
  return JSON.parse(readText(path)) as { references?: { path: string }[] }
}
