import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { generateLog } from '../../examples/simulator/generate-log.ts'
import { readText } from '../support/workspace.ts'
import { runSluice } from './run-sluice.ts'
import { wordsIn } from './shell-words.ts'
import { testFiles } from './test-files.ts'

const before = process.cwd()
const { folder, write } = testFiles('pages')

beforeAll(() => {
  process.chdir(folder)
  const log = generateLog()
  const half = log.indexOf('\n', log.length / 2) + 1
  const own = { ts: '2026-11-21T10:00:00Z', client: { ip: '192.0.2.7' }, method: 'GET', code: 200 }
  const files: Readonly<Record<string, string | Buffer>> = {
    'access.log': log,
    'access.log.1': readable(log.slice(half)),
    'access.log.2.gz': gzipSync(readable(log.slice(0, half))),
    'nginx.log': '192.0.2.7 [2026-11-21T10:00:00+00:00] "GET /users/7 HTTP/1.1" 200 0.012 "acme"\n',
    'envoy.log':
      '[2026-11-21T10:00:00.250Z] "GET /a HTTP/1.1" 200 - 0 5 3 2 "192.0.2.7" "curl/8.5.0" "cc21d9b0" "locations" "tcp://10.0.2.1:80"\n',
    'app.log': `${JSON.stringify({ ...own, url: '/users/7', took: 0.1, tenant: 'acme', plan: 'pro' })}\n`,
    'tighter.yaml':
      'policies:\n  - { name: burst, limit: 8, window: 10s }\n  - { name: sustained, limit: 14, window: 1m }\n',
    'tenants.yaml':
      'key: tenant\npolicies:\n  - { name: plan, limit: { tiers: { pro: 100 }, by: plan, default: 10 }, window: 1m }\n',
  }
  for (const [name, content] of Object.entries(files)) write(name, content)
})

afterAll(() => process.chdir(before))

describe('docs/simulator.md', () => {
  it('shows commands with what they print', { timeout: 60_000 }, async () => {
    const shown = commandsOf(readText('docs/simulator.md'))
    expect(shown).not.toEqual([])
    for (const { words, output } of shown) {
      const own = words.includes('-o') ? [...words, '--force'] : words
      const stdin = words.includes('-') ? readFileSync('access.log') : ''
      const { stdout, stderr } = await runSluice(own, { stdin, columns: 200 })
      expect(stderr, words.join(' ')).toBe('')
      // A page may leave out lines: `…` stands for them.
      const parts = output.split('…\n')
      if (parts.length === 1 && output !== '') expect(stdout).toBe(output)
      for (const part of parts) expect(stdout).toContain(part)
    }
  })
})

/** The lines after `$ sluice` in blocks of a console, each with the lines up to the next, which it prints. */
function commandsOf(page: string) {
  const blocks = [...page.matchAll(/```console\n([\s\S]*?)```/g)].map(([, block = '']) => block)
  return blocks.flatMap((block) =>
    block
      .split(/^\$ sluice /m)
      .slice(1)
      .map((text) => {
        const [line = '', ...output] = text.split('\n')
        return { words: wordsIn(line), output: output.join('\n') }
      }),
  )
}

function readable(log: string): string {
  return log.replaceAll(/^.*\\x16.*\n/gm, '')
}
