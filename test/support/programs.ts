import { spawnSync } from 'node:child_process'
import { accessSync, constants, readdirSync, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { addNote } from './run-notes.ts'

const INSTALL_TIMEOUT_MS = 5 * 60_000

interface Program {
  /** The variable of the environment that has its path. */
  readonly variable: string
  readonly names: readonly string[]
  readonly apt: string
  readonly brew?: string
  readonly version?: string
  /** Where it may be beside the PATH. */
  readonly elsewhere?: () => readonly string[]
}

const programs = {
  redis: {
    ...{ variable: 'REDIS_SERVER_BIN', names: ['redis-server', 'valkey-server'] },
    ...{ apt: 'redis-server', brew: 'redis', version: '6.2 or later, or Valkey' },
  },
  postgres: {
    ...{ variable: 'POSTGRES_BIN', names: ['initdb'] },
    ...{ apt: 'postgresql', brew: 'postgresql', version: '13 or later' },
    elsewhere: () => newestFirst('/usr/lib/postgresql', 'bin/initdb'),
  },
  pgbouncer: { ...namedAlike('pgbouncer'), elsewhere: () => ['/usr/sbin/pgbouncer'] },
  rabbitmq: {
    ...{ variable: 'RABBITMQ_BIN', names: ['rabbitmq-server'] },
    ...{ apt: 'rabbitmq-server', brew: 'rabbitmq', version: '3.10 or later' },
    // Debian's script on the PATH runs as another user; here is the server's own.
    elsewhere: () => newestFirst('/usr/lib/rabbitmq/lib', 'sbin/rabbitmq-server'),
  },
  chrome: {
    variable: 'CHROME_BIN',
    names: ['google-chrome', 'google-chrome-stable', 'chromium', 'chromium-browser', 'chrome'],
    apt: 'chromium',
    elsewhere: () => ['/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'],
  },
  openssl: namedAlike('openssl'),
  prometheus: namedAlike('prometheus'),
  promtool: { ...namedAlike('prometheus'), variable: 'PROMTOOL_BIN', names: ['promtool'] },
  alertmanager: {
    // Debian calls it by the longer name.
    ...{ variable: 'ALERTMANAGER_BIN', names: ['alertmanager', 'prometheus-alertmanager'] },
    ...{ apt: 'prometheus-alertmanager', brew: 'alertmanager' },
  },
} satisfies Record<string, Program>

/** A program that is called as its package is. */
function namedAlike(name: string): Program {
  return { variable: `${name.toUpperCase()}_BIN`, names: [name], apt: name, brew: name }
}

/**
 * The path of a program: its variable of the environment, else where it is usually, else it is installed now with apt or brew.
 * Throws a message that says what to do when none of these works.
 */
export function findOrInstall(name: keyof typeof programs): string {
  const program: Program = programs[name]
  const { variable, names, version = '' } = program
  const found = findProgram(program)
  if (found !== undefined) return found
  const problem = install(name, program)
  const installed = findProgram(program)
  if (installed !== undefined) return installed
  throw new Error(
    `These tests need ${names.join(' or ')}, and none was found or could be installed (${problem}). ` +
      `Install ${name} ${version}, or set ${variable} to the path of the program.`,
  )
}

/** The same for what a run can do without: then the end of the run says what was not tried. */
export function findOrNote(name: keyof typeof programs, what: string): string | undefined {
  try {
    return findOrInstall(name)
  } catch (error) {
    addNote(`NOT TRIED: ${what}. ${error instanceof Error ? error.message : error}`)
    return undefined
  }
}

function findProgram({ variable, names, elsewhere }: Program): string | undefined {
  const declared = process.env[variable]
  if (declared && !isExecutable(declared)) {
    throw new Error(
      `${variable} is ${declared}, which is not an executable file. Correct or unset it.`,
    )
  }
  return declared || elsewhere?.().find(isExecutable) || onPath(names)
}

/** The programs of each version, where Debian keeps several. */
function newestFirst(folder: string, program: string): readonly string[] {
  try {
    const versions = readdirSync(folder).sort((a, b) => b.localeCompare(a, 'en', { numeric: true }))
    return versions.map((version) => join(folder, version, program))
  } catch {
    // Another system.
    return []
  }
}

function onPath(names: readonly string[]): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '')
  return names
    .flatMap((name) => folders.map((folder) => join(folder, name)))
    .find((candidate) => isExecutable(candidate))
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    // Missing or forbidden: either way it cannot be run.
    return false
  }
}

/** Tries to install a program, and returns what went wrong, or a note that nothing did. */
function install(name: string, { brew, apt }: Program): string {
  const has = (program: string) => onPath([program]) !== undefined
  if (brew && has('brew')) return run(['brew', 'install', brew], name)
  if (!has('apt-get')) return `there is no apt-get${brew ? ', and no brew' : ''}`
  const prefix = rootPrefix(has('sudo'))
  if (prefix === undefined) return 'apt-get needs root, and sudo asks for a password or is missing'
  // RUNLEVEL=1 keeps packages from starting system services: each test starts a server of its own.
  const environment = ['env', 'DEBIAN_FRONTEND=noninteractive', 'RUNLEVEL=1']
  const command = [...prefix, ...environment, 'apt-get', '-q']
  const update = run([...command, 'update'], name)
  return `${update}; ${run([...command, 'install', '-y', '--no-install-recommends', apt], name)}`
}

function rootPrefix(hasSudo: boolean): string[] | undefined {
  if (process.getuid?.() === 0) return []
  const passwordless =
    hasSudo && spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore', timeout: 10_000 }).status === 0
  return passwordless ? ['sudo', '-n'] : undefined
}

function run(command: readonly string[], what: string): string {
  const text = command.join(' ')
  console.log(`No ${what} found, running: ${text}`)
  const [program = '', ...args] = command
  const result = spawnSync(program, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: INSTALL_TIMEOUT_MS,
  })
  if (result.status === 0) return `\`${text}\` succeeded`
  const reason = result.error?.message ?? result.stderr.trim().split('\n').at(-1)
  return `\`${text}\` failed: ${reason}`
}
