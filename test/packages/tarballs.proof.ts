import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { run } from '../support/run.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { packages, readText, root } from '../support/workspace.ts'
import { type Consumer, installConsumer, programs, runProgram } from './consumer.ts'

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
      expect(installed('package.json')).toContain(
        `"directory": "${name.replace('@sluice', 'packages')}"`,
      )
    },
  )

  it('take at most 0.9 MB for Express with the memory store, and no library beside them', () => {
    const names = ['express', 'http', 'headers', 'core'].map((name) => `@sluice/${name}`)
    const folders = names.map((name) => join(consumer.folder, 'node_modules', name))
    const sources = packages().filter(({ manifest }) => names.includes(manifest.name))
    const needed = sources.flatMap(({ manifest }) => Object.keys(manifest.dependencies ?? {}))
    expect(new Set(needed)).toEqual(new Set(names.slice(1)))
    const bytes = folders.reduce((sum, folder) => sum + bytesUnder(folder), 0)
    expect(bytes).toBeLessThanOrEqual(900_000)
  })
})

function bytesUnder(folder: string): number {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => !path.startsWith('node_modules'))
    .map((path) => statSync(join(folder, path)))
    .reduce((sum, file) => sum + (file.isFile() ? file.size : 0), 0)
}
