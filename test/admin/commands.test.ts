import { execFile, spawnSync } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { readText } from '../support/workspace.ts'
import { startAdmin } from './admin-server.ts'

const page = readText('docs/admin.md')
const hasCurl = spawnSync('curl', ['--version']).status === 0

/** An application that anybody on this machine may change, and what runs commands of the page on it. */
async function start() {
  const started = await startAdmin({ admin: { authorize: 'localhost' } })
  const origin = `127.0.0.1:${started.port}`
  const run = async (commands = '') => {
    const here = commands.replace('localhost:3000', origin)
    return (await promisify(execFile)('sh', ['-ec', here])).stdout
  }
  return { ...started, run }
}

describe.runIf(hasCurl)('the commands in docs/admin.md', () => {
  it('reset a key and throw the switch', async () => {
    const { visit, policies, run } = await start()
    for (let i = 0; i < 5; i += 1) await visit('ada')
    expect(await visit('ada')).toBe(429)
    expect(await visit('bob')).toBe(200)
    await run(/^```sh\n(api=.*?)^```/ms.exec(page)?.[1])
    expect(policies.state).toMatchObject({ kill: 'shadow', killedBy: 'change' })
    await policies.kill('none', { author: 'bob', reason: 'a test' })
    expect(await visit('ada')).toBe(200)
  })
})
