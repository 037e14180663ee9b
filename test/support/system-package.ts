import { spawnSync } from 'node:child_process'
import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'

const INSTALL_TIMEOUT_MS = 5 * 60_000

/** The first of some programs that is on the PATH. */
export function findOnPath(
  names: readonly string[],
  path: string = process.env.PATH ?? '',
): string | undefined {
  const folders = path.split(delimiter).filter((folder) => folder !== '')
  return names
    .flatMap((name) => folders.map((folder) => join(folder, name)))
    .find((candidate) => isExecutable(candidate))
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    // Missing or forbidden: either way it cannot be run.
    return false
  }
}

/** What to install, by package manager. */
export interface SystemPackage {
  /** For messages: `Redis server`. */
  readonly what: string
  /** The arguments of brew; none where it has no such package. */
  readonly brew?: readonly string[]
  readonly apt: readonly string[]
}

/** Tries to install a package and returns what went wrong, or a note that nothing did. */
export function installPackage({ what, brew, apt: packages }: SystemPackage): string {
  const has = (name: string) => findOnPath([name]) !== undefined
  if (brew && has('brew')) return run(['brew', ...brew], what)
  if (!has('apt-get')) return `there is no apt-get${brew ? ', and no brew' : ''}`
  const prefix = rootPrefix(has('sudo'))
  if (prefix === undefined) return 'apt-get needs root, and sudo asks for a password or is missing'
  // RUNLEVEL=1 keeps packages from starting system services: each test starts a server of its own.
  const apt = [...prefix, 'env', 'DEBIAN_FRONTEND=noninteractive', 'RUNLEVEL=1', 'apt-get', '-q']
  const update = run([...apt, 'update'], what)
  const install = run([...apt, 'install', '-y', '--no-install-recommends', ...packages], what)
  return `${update}; ${install}`
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
