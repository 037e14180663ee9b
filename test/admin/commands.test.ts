import { execFile, spawnSync } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { readText } from '../support/workspace.ts'
import { startAdmin } from './admin-server.ts'

const page = readText('docs/admin.md')
const hasCurl = spawnSync('curl', ['--version']).status === 0

it.runIf(hasCurl)('the commands in docs/admin.md reset a key and throw the switch', async () => {
  const { visit, policies, port } = await startAdmin({ admin: { authorize: 'localhost' } })
  for (let i = 0; i < 5; i += 1) await visit('ada')
  expect(await visit('ada')).toBe(429)
  expect(await visit('bob')).toBe(200)
  const commands = /^```sh\n(api=.*?)^```/ms.exec(page)?.[1] ?? ''
  const here = commands.replace('localhost:3000', `127.0.0.1:${port}`)
  await promisify(execFile)('sh', ['-ec', here])
  expect(policies.state).toMatchObject({ kill: 'shadow', killedBy: 'change' })
  await policies.kill('none', { author: 'bob', reason: 'a test' })
  expect(await visit('ada')).toBe(200)
})
