import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { pageModules, writeModules } from '../examples/page-modules.ts'
import { run } from '../support/run.ts'
import { root } from '../support/workspace.ts'

const examples = '../../../examples'

/** The blocks of each page that are whole files of tests, with the folders of the modules that they import. */
const pages = [
  ['docs/testing.md', '.'],
  ['docs/stores.md', `${examples}/store`],
  ['docs/adapters.md', `${examples}/node-http-adapter`],
  ['docs/brokers.md', `${examples}/array-broker`],
] as const

const blocks = pages.flatMap(([page, folder]) =>
  pageModules(page)
    .filter(({ code }) => code.includes('node:test'))
    .map(({ heading, code }) => ({
      heading: `${page} ${heading}`,
      code: code.replaceAll("from './", `from '${folder}/`),
    })),
)

it('the tests on the pages pass under node:test', { timeout: 120_000 }, async () => {
  expect(blocks.map(({ heading }) => heading)).toHaveLength(6)
  const written = await writeModules(blocks)
  onTestFinished(() => written.remove())
  const all = join(written.folder, 'all.ts')
  const imports = blocks.map(({ heading }) => `import ${JSON.stringify(written.pathOf(heading))}`)
  await writeFile(all, imports.join('\n'))
  const args = ['--conditions=@sluice/source', '--import', 'tsx', '--test-reporter=tap', all]
  const printed = await run(process.execPath, args, { cwd: root })
  expect(printed).toMatch(/^# pass [2-9]\d\d$/m)
  expect(printed).toMatch(/^# fail 0$/m)
})
