import { execFile, spawnSync } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { readText } from '../support/workspace.ts'
import { startAdmin } from './admin-server.ts'

const page = readText('docs/admin.md')
const hasCurl = spawnSync('curl', ['--version']).status === 0

it.skipIf(!hasCurl)(
  'docs/admin.md has commands that reset a key and throw the switch',
  async () => {
    const { port, visit, policies } = await startAdmin({ admin: { authorize: 'localhost' } })
    for (let i = 0; i < 5; i += 1) await visit('ada')
    expect(await visit('ada')).toBe(429)
    expect(await visit('bob')).toBe(200)
    const [, commands = ''] = /^```sh\n(api=.*?)^```/ms.exec(page) ?? []
    const here = commands.replace('localhost:3000', `127.0.0.1:${port}`)
    await promisify(execFile)('sh', ['-ec', here])
    expect(policies.state).toMatchObject({ kill: 'shadow', killedBy: 'change' })
    await policies.kill('none', { author: 'bob', reason: 'a test' })
    expect(await visit('ada')).toBe(200)
  },
)

it.skipIf(!hasCurl)('docs/admin.md has commands that raise a limit and undo it', async () => {
  const { port, visit } = await startAdmin({ admin: { authorize: 'localhost' } })
  for (let i = 0; i < 5; i += 1) await visit('ada')
  expect(await visit('ada')).toBe(429)
  const [, commands = ''] = /^```sh\n(# Role keys.*?)^```/ms.exec(page) ?? []
  const [raise = '', undo = ''] = commands.split(/^(?=# Undo)/m)
  const run = (part: string) =>
    promisify(execFile)('sh', ['-ec', `api=http://127.0.0.1:${port}/limits/api/v1\n${part}`])
  expect((await run(raise)).stdout).toContain('"dryRun":false')
  expect(await visit('ada')).toBe(200)
  expect((await run(undo)).stdout).toContain('"dryRun":false')
  expect(await visit('ada')).toBe(429)
})

it.skipIf(!hasCurl)(
  'docs/admin.md has a session that blocks, unblocks and reads the trail',
  async () => {
    const { port } = await startAdmin({ admin: { authorize: 'localhost' } })
    const [, session = ''] = /^```console\n(\$ api=.*?)^```/ms.exec(page) ?? []
    const all = session.trim().split('\n')
    const commands = all
      .filter((line) => line.startsWith('$ '))
      .map((line) => `${line.slice(2)}; echo`)
    const here = commands.join('\n').replace('localhost:3000', `127.0.0.1:${port}`)
    const { stdout } = await promisify(execFile)('sh', ['-ec', here])
    // Digests, ids and times are of the run.
    const lasting = (lines: readonly string[]) =>
      lines.map((line) => line.replace(/"[\w-]{22}"|"[\da-f-]{36}"|\b\d{13}\b/g, '…'))
    expect(lasting(stdout.split('\n').filter((line) => line !== ''))).toEqual(
      lasting(all.filter((line) => !line.startsWith('$ '))),
    )
  },
)
