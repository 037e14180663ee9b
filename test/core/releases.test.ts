import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'esbuild'
import { expect, it, vi } from 'vitest'
import { run } from '../support/run.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const written = { fetch: '2.0.0', metrics: '1.9.0' }

/** Writes two releases of two packages, each with a core of its own, as npm would install them. */
async function writeReleases(folder: string): Promise<void> {
  for (const [name, version] of Object.entries(written)) {
    await build({
      stdin: { contents: `export * from '@sluice/${name}'`, resolveDir: import.meta.dirname },
      ...{ bundle: true, platform: 'node', format: 'cjs', logLevel: 'silent' },
      outfile: join(folder, `${name}.cjs`),
      conditions: ['@sluice/source'],
      define: { SLUICE_VERSION: JSON.stringify(version) },
    })
  }
}

const warning =
  'sluice: @sluice/metrics 1.9.0 and @sluice/http 2.0.0 have different versions, and may misread shared data: ' +
  'use the same version of all @sluice packages in package.json; npm ls @sluice/core shows where each version comes from'

const script = `
  const warnings = []
  console.warn = (text) => warnings.push(text)
  const { rateLimit } = require('./fetch.cjs')
  const { collectMetrics } = require('./metrics.cjs')
  console.log(warnings.length)
  const observers = [collectMetrics()]
  console.log(warnings.length)
  rateLimit({ limit: 1, window: '1m', observers })
  rateLimit({ limit: 2, window: '1m' })
  console.log(warnings.join())
`

it('packages of two releases in one process warn once, on first use', async () => {
  using home = temporaryFolder('releases')
  await writeReleases(home.path)
  const main = join(home.path, 'main.cjs')
  await writeFile(main, script)

  const printed = await run(process.execPath, [main], { cwd: home.path })
  expect(printed).toBe(`0\n0\n${warning}\n`)
})

it('the sources have no release, and do not warn', async () => {
  const warn = vi.spyOn(console, 'warn').mockReturnValue()
  const { createLimiter, noteRelease } = await import('@sluice/core')
  noteRelease('@sluice/core')
  createLimiter({ limit: 1, window: '1m' })
  expect(warn).not.toHaveBeenCalled()
  warn.mockRestore()
})
