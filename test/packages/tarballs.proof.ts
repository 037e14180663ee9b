import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { run } from '../support/run.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { type Manifest, packages, readManifest, readText, root } from '../support/workspace.ts'
import { type Consumer, installConsumer, programs, runProgram } from './consumer.ts'
import { publishedManifest } from './published-manifest.ts'

describe('the packed tarballs, installed in an empty folder', () => {
  const home = temporaryFolder('consumer')
  let consumer: Consumer

  beforeAll(async () => {
    consumer = await installConsumer(home.path)
  }, 600_000)
  afterAll(() => home[Symbol.dispose]())

  it.each(programs.map((program) => program.join(' ')))(
    'are loaded and limit one request: %s',
    async (program) => {
      await expect(runProgram(consumer, program.split(' '))).resolves.toMatch(/: ok\n$/)
    },
    60_000,
  )

  it('type-check in a strict project that checks our declarations too', async () => {
    const tsc = join(root, 'node_modules/.bin/tsc')
    await expect(run(tsc, ['-p', '.'], { cwd: consumer.folder })).resolves.toBe('')
  }, 120_000)

  it.each(packages().map(({ manifest }) => manifest.name))(
    'contain only used files: %s',
    async (name) => {
      const tarball = consumer.tarballs.find((candidate) => candidate.name === name)
      const listing = await run('tar', ['-tzf', tarball?.path ?? ''], { cwd: consumer.folder })
      const files = listing.trim().replaceAll('package/', '').split('\n')
      const built = ['index.js', 'index.cjs', 'index.d.ts', 'index.d.cts']
      const expected = [...built.map((file) => `dist/${file}`), 'LICENSE', 'README.md']
      expect(files).toEqual(expect.arrayContaining([...expected, 'package.json']))
      const allowed =
        /^(dist\/[\w/.-]+\.(js|cjs|d\.ts|d\.cts)|package\.json|(schema|openapi)\.json|README\.md|GUIDE\.md|LICENSE|alerts\/[\w.]+\.yml|dashboards\/[\w-]+\.json|sql\/migration\.sql)$/
      expect(files.filter((file) => !allowed.test(file))).toEqual([])
      const installed = (file: string) =>
        readFileSync(join(consumer.folder, 'node_modules', name, file), 'utf8')
      expect(installed('LICENSE')).toContain(readText('LICENSE').trim())
      // Each knows its release, and warns beside another one.
      const scripts = files.filter((file) => /\.c?js$/.test(file))
      expect(scripts.map(installed).join()).not.toContain('SLUICE_VERSION')
      expect(installed('package.json')).not.toMatch(/@sluice\/source|devDependencies|src\//)
    },
  )

  it('take at most 0.92 MB for Express with the memory store, and no library beside them', () => {
    const folders = closureOf('@sluice/express', join(consumer.folder, 'node_modules'))
    const bytes = folders.reduce((sum, folder) => sum + bytesUnder(folder), 0)
    expect(folders).toHaveLength(4)
    expect(bytes).toBeLessThanOrEqual(920_000)
  })
})

it('publishedManifest gives each entry an ESM and a CommonJS file, also for what does not read exports', () => {
  const manifest: Manifest = {
    name: '@sluice/http',
    exports: {
      '.': { '@sluice/source': './src/index.ts', default: './dist/index.js' },
      './adapter': { '@sluice/source': './src/adapter.ts', default: './dist/adapter.js' },
      './package.json': './package.json',
    },
    devDependencies: { bundled: '1.0.0' },
  }
  const esm = { types: './dist/adapter.d.ts', default: './dist/adapter.js' }
  const cjs = { types: './dist/adapter.d.cts', default: './dist/adapter.cjs' }
  const published = publishedManifest({ folder: 'packages/http', manifest })
  const { repository, homepage } = readManifest('.')
  expect(published).toMatchObject({
    homepage,
    repository: { ...repository, directory: 'packages/http' },
    main: './dist/index.cjs',
    types: './dist/index.d.cts',
    typesVersions: { '*': { adapter: ['./dist/adapter.d.cts'] } },
    exports: {
      './adapter': { 'module-sync': esm, import: esm, require: cjs },
      './package.json': './package.json',
    },
  })
  expect(Object.keys(Object(published.exports)['./adapter'])[0]).toBe('module-sync')
  expect(published).not.toHaveProperty('devDependencies')
})

function bytesUnder(folder: string): number {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => !path.startsWith('node_modules'))
    .map((path) => statSync(join(folder, path)))
    .reduce((sum, file) => sum + (file.isFile() ? file.size : 0), 0)
}

/** The folders of a package and of all that it depends on, without peers. */
function closureOf(name: string, modules: string, found: string[] = [], from = modules): string[] {
  const nested = join(from, 'node_modules', name)
  const folder = existsSync(nested) ? nested : join(modules, name)
  if (found.includes(folder)) return found
  found.push(folder)
  const manifest: Manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  for (const dependency of Object.keys(manifest.dependencies ?? {})) {
    closureOf(dependency, modules, found, folder)
  }
  return found
}
