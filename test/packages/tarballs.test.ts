import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { run } from '../support/run.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { packages, root } from '../support/workspace.ts'
import { type Consumer, installConsumer, programs, runProgram } from './consumer.ts'
import { buildAll } from './tarballs.ts'

describe('the packed tarballs, installed in an empty folder', () => {
  const home = temporaryFolder('consumer')
  let consumer: Consumer

  beforeAll(async () => {
    await buildAll()
    consumer = await installConsumer(home.path)
  }, 180_000)
  afterAll(() => home[Symbol.dispose]())

  it.each(programs)('are imported and limit one request: %s', async (program) => {
    await expect(runProgram(consumer, program)).resolves.toMatch(/: ok\n$/)
  })

  it('type-check in a strict project that checks our declarations too', async () => {
    const tsc = join(root, 'node_modules/.bin/tsc')
    await expect(run(tsc, ['-p', '.'], { cwd: consumer.folder })).resolves.toBe('')
  }, 60_000)

  it.each(packages().map(({ manifest }) => manifest.name))(
    'hold what is used and nothing else: %s',
    async (name) => {
      const tarball = consumer.tarballs.find((candidate) => candidate.name === name)
      const listing = await run('tar', ['-tzf', tarball?.path ?? ''], { cwd: consumer.folder })
      const files = listing
        .trim()
        .split('\n')
        .map((file) => file.replace('package/', ''))
      expect(files).toEqual(
        expect.arrayContaining(['package.json', 'dist/index.js', 'dist/index.d.ts']),
      )
      expect(
        files.filter(
          (file) => !/^(dist|src|lua)\/|^(package\.json|README\.md|LICENSE)$/.test(file),
        ),
      ).toEqual([])
      expect(files.filter((file) => /\.test\.|tsbuildinfo/.test(file))).toEqual([])
    },
  )
})
