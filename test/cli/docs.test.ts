import { existsSync, readFileSync } from 'node:fs'
import { describe, expect } from 'vitest'
import { it } from '../support/redis-test.ts'
import { readText } from '../support/workspace.ts'
import { startFleet } from './fleet-server.ts'
import { runSluice } from './run-sluice.ts'
import { wordsIn } from './shell-words.ts'
import { testFiles } from './test-files.ts'

const page = readText('docs/cli.md')

/** The commands of the blocks of a shell, in order, without the installation. */
const others = ['packages/cli/README.md', 'docs/simulator.md', 'docs/incident.md'].map(readText)
const lines = [page, ...others]
  .flatMap((text) =>
    [...text.matchAll(/^```sh\n(.*?)^```/gms)].flatMap(([, block = '']) =>
      block.trim().split('\n'),
    ),
  )
  .filter((line) => !line.startsWith('npm install '))

const deployed = `policies:
  - { name: burst, limit: 5, window: 1h, key: user }
penalty: { after: never, key: user }
`

const log = Array.from({ length: 50 }, (_, index) => {
  const time = `21/Nov/2026:10:00:${10 + index} +0000`
  return `192.0.2.${index % 7} - - [${time}] "GET / HTTP/1.1" 200 5 "-" "curl/8"\n`
})
const { at, write } = testFiles('docs')
write('sluice.yaml', deployed.replace('limit: 5', 'limit: 8'))
write('new.yaml', deployed.replace('limit: 5', 'limit: 7'))
write('access.log', log.join(''))
write('key.txt', 'user ada\n')

describe('docs/cli.md', () => {
  const ofLogs = lines.filter((line) => /sluice (?:simulate|suggest|diff|check)\b/.test(line))

  // A replay moves the clock of the process, so nothing else may run beside it.
  it('shows commands of logs that run', async () => {
    expect(ofLogs.length).toBeGreaterThan(3)
    for (const line of ofLogs) await runLine(line)
  })

  it('shows commands of a fleet and of a Redis that run', async ({ redis }) => {
    const fleet = await startFleet({ file: deployed })
    const places = {
      'redis://localhost:6379': redis.url,
      'http://localhost:3000/': `http://127.0.0.1:${fleet.port}/`,
    }
    const env = {
      ...{ SLUICE_ADMIN_URL: fleet.url, SLUICE_ADMIN_TOKEN: 'token-of-ops' },
      REDIS_URL: redis.url,
    }
    const ofServers = lines.filter((line) => !ofLogs.includes(line))
    expect(ofServers.length).toBeGreaterThan(12)
    for (const line of ofServers) await runLine(line, places, env)
  }, 60_000)

  /** @param places addresses of the page, and those of the test */
  async function runLine(
    line: string,
    places: Readonly<Record<string, string>> = {},
    outer: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    const { env, args, input } = wordsOf(line)
    // The policies of the page count users, whom a log of nginx does not have.
    const keys = /sluice (?:simulate|diff)/.test(line) ? ['--key', 'user=ip'] : []
    const placed = args.map((word) => {
      const file = at(word)
      const isFile = existsSync(file) || /^[\w-]+\.(?:yaml|html)$/.test(word)
      return places[word] ?? (isFile ? file : word)
    })
    const own = Object.entries(env).map(([name, value]) => [name, places[value] ?? value])
    // Two pages write the same report.
    const again = line.includes('--html') ? ['--force'] : []
    const { exitCode, stderr } = await runSluice([...placed, ...keys, ...again], {
      env: { ...outer, ...Object.fromEntries(own) },
      ...(input !== undefined && { stdin: readFileSync(at(input)) }),
    })
    // The Redis of the test has no maxmemory, which --strict counts.
    expect(exitCode, `${line}\n${stderr}`).toBe(line.includes('--strict') ? 1 : 0)
  }

  it('has every command with every option', async () => {
    const { stdout } = await runSluice(['--help'])
    const words = [...stdout.matchAll(/^ {2}([a-z]+)(?= .* {2,}[A-Z]|\b)/gm)]
    const others = ['', 'help', 'done', 'found', 'not']
    const known = words.map(([, name = '']) => name).filter((name) => !others.includes(name))
    expect(known).toEqual(expect.arrayContaining(['simulate', 'top', 'apply', 'on', 'doctor']))
    for (const name of known) {
      expect(page, name).toContain(`\`${name}\``)
      const help = (await runSluice([name, '--help'])).stdout
      expect(help).toContain(`Examples:\n  sluice ${name}`)
      const options = [...help.matchAll(/^ {2}(?:-\w, )?(--[a-z-]+)/gm)].map(([, option]) => option)
      for (const option of options) {
        if (option !== '--help') expect(page, `${name} ${option}`).toContain(option)
      }
    }
  })
})

/** Reads a line as a shell does: `NAME=value sluice a "b c" < file`. */
function wordsOf(line: string) {
  const words = wordsIn(line)
  const start = words.indexOf('sluice')
  expect(start, line).toBeGreaterThan(-1)
  const redirect = words.indexOf('<')
  const env = Object.fromEntries(words.slice(0, start).map((word) => word.split(/=(.*)/s, 2)))
  return {
    env: env as Readonly<Record<string, string>>,
    args: words.slice(start + 1, redirect === -1 ? undefined : redirect),
    input: redirect === -1 ? undefined : words[redirect + 1],
  }
}
