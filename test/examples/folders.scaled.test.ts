import { existsSync, readdirSync } from 'node:fs'
import { expect, it } from 'vitest'
import { isProof } from '../support/scale.ts'
import { readManifest, readText, root } from '../support/workspace.ts'
import { startInTest } from './start-example.ts'

const folders = readdirSync(`${root}examples`)

it.each(folders)(
  'examples/%s has a README with the command that starts it, without a build',
  (name) => {
    const readme = readText(`examples/${name}/README.md`)
    const command = name === 'quickstart' ? 'npm start #' : `npm start -w examples/${name}`
    expect(readme).toContain(command)
    expect(readManifest(`examples/${name}`).scripts?.start).toContain('@sluice/source')
    const links = [...readme.matchAll(/\]\(\.\.\/\.\.\/([^)#]+)/g)].map(([, path]) => path)
    expect(links.filter((path) => !existsSync(root + path))).toEqual([])
  },
)

// Those with servers are tried in examples.scaled.test.ts and elsewhere.
it.runIf(isProof).each([
  ['store', /request 5: allowed\nrequest 6: denied for \d+ ms\n/],
  ['array-broker', /done: report 5 is done\n/],
  ['node-http-adapter', /listening on \d+\n/],
])('examples/%s does what its README says', async (name, end) => {
  expect(await startInTest(name, { PORT: '0' }).printed(end)).toMatch(end)
})
