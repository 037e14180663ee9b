import { durationMs, onOneLine } from '@sluice/core'
import type { Finding, Severity } from '../doctor/finding.ts'
import { CliError, type ExitCode, exitCodes } from '../terminal/exit-codes.ts'
import { askSecret, canAsk } from '../terminal/prompt.ts'
import { type Style, styleOf } from '../terminal/style.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { jsonText } from '../terminal/text.ts'
import type { CliCommand } from './command.ts'

interface DoctorOptions {
  readonly api?: string
  readonly prefix: string
  readonly timeout: string
  readonly strict?: true
  readonly json?: true
}

export const doctor: CliCommand = {
  usage: 'doctor',
  summary: 'Find problems with a Redis server and the connection to it',
  notes: `The address is in REDIS_URL (redis://user:password@host:port, rediss:// for TLS); without it, the command
prompts for it. It runs no slow commands, and writes only its own keys, which expire within seconds.`,
  examples: [
    ['sluice doctor', 'each finding, with its fix'],
    ['sluice doctor --api https://api.example.com/', 'also checks for a wrongly trusted proxy'],
    ['sluice doctor --json --strict', 'for CI: exits with 1 for warnings too'],
  ],
  setUp(command) {
    command
      .option(
        '--api <url>',
        'address of the API, which gets six requests, three with made-up addresses',
      )
      .option('--prefix <text>', 'prefix of the keys, as in redisStore', 'sluice')
      .option('--timeout <duration>', 'time after which to stop waiting for answers', '10s')
      .option('--strict', 'exit with 1 for warnings too, not only for errors')
      .option('--json', 'print the findings as JSON')
  },
  run: runDoctor,
}

async function runDoctor(terminal: Terminal, options: DoctorOptions): Promise<ExitCode> {
  const { api, prefix, timeout, strict = false, json = false } = options
  const apiUrl = api === undefined ? undefined : urlOf('--api', api, ['http:', 'https:'])
  if (apiUrl && apiUrl.username + apiUrl.password !== '') {
    throw new CliError(
      '--api must be an address without user and password: arguments are visible in the process list.',
    )
  }
  const settings = {
    prefix: prefixOf(prefix),
    api: apiUrl,
    timeoutMs: durationMs(timeout, '--timeout'),
  }
  const text = terminal.env.REDIS_URL || (await askUrl(terminal))
  const redis = urlOf('REDIS_URL', text, ['redis:', 'rediss:'])
  // Loaded only for this command: ioredis subclasses String, which makes string methods slow in
  // Node 20, also for reading logs.
  const { examine } = await import('../doctor/examine.ts')
  const findings = await examine({ ...settings, redis })
  if (json) terminal.stdout.write(jsonText({ findings }))
  else write(terminal, findings)
  const worst = (severity: Severity) => findings.some((finding) => finding.severity === severity)
  return worst('error') || (strict && worst('warning')) ? exitCodes.found : exitCodes.ok
}

function askUrl(terminal: Terminal): Promise<string> {
  if (canAsk(terminal)) return askSecret(terminal, 'Address of Redis (hidden): ')
  throw new CliError(
    'Set REDIS_URL to the address of Redis, such as redis://user:password@localhost:6379. It is not an argument, because it may contain a password.',
  )
}

/** Parses an address; messages never repeat it, since it may contain a password. */
function urlOf(name: string, text: string, protocols: readonly string[]): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url && protocols.includes(url.protocol) && url.hostname !== '') return url
  const legal = protocols.map((protocol) => `${protocol}//host:port`).join(' or ')
  const secrets = name === 'REDIS_URL' ? ', with user and password if needed' : ''
  throw new CliError(`${name} must be ${legal}${secrets}.`)
}

function prefixOf(prefix: string): string {
  if (/^[A-Za-z0-9._:-]{1,64}$/.test(prefix)) return prefix
  throw new CliError('--prefix must be 1 to 64 characters of A-Z a-z 0-9 . _ : -')
}

const marks: Readonly<Record<Severity, readonly [mark: string, colour: Parameters<Style>[0]]>> = {
  error: ['✗', 'red'],
  warning: ['!', 'yellow'],
  note: ['·', 'dim'],
  ok: ['✓', 'green'],
}

function write(terminal: Terminal, findings: readonly Finding[]): void {
  const { stdout } = terminal
  const style = styleOf(stdout, terminal)
  const width = Math.max(...findings.map(({ check }) => check.length))
  for (const { check, severity, seen, fix } of findings) {
    const [mark, colour] = marks[severity]
    stdout.write(
      `${style(colour, mark)} ${style('bold', check.padEnd(width))}  ${onOneLine(seen)}\n`,
    )
    if (fix !== undefined)
      stdout.write(`  ${' '.repeat(width)}  ${style('cyan', 'fix:')} ${onOneLine(fix)}\n`)
  }
  const count = (severity: Severity) =>
    findings.filter((finding) => finding.severity === severity).length
  stdout.write(`\n${plural(count('error'), 'error')}, ${plural(count('warning'), 'warning')}\n`)
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
