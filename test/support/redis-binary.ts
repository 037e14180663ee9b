import { spawnSync } from 'node:child_process'
import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'

const SERVER_NAMES = ['redis-server', 'valkey-server']
const INSTALL_TIMEOUT_MS = 5 * 60_000

/**
 * The path of a Redis or Valkey server: `REDIS_SERVER_BIN`, else one on the PATH, else one that is installed now with
 * the system's package manager. Throws a message that says what to do when none of these works.
 */
export function findOrInstallRedis(): string {
  const found = findRedis()
  if (found !== undefined) return found
  const problem = installRedis()
  const installed = findRedis()
  if (installed !== undefined) return installed
  throw new Error(
    `These tests need a Redis server, and none was found or could be installed (${problem}). ` +
      'Install Redis 6.2 or later, or Valkey, so that `redis-server` or `valkey-server` is on the PATH, ' +
      'or set REDIS_SERVER_BIN to the path of the binary.',
  )
}

export function findRedis(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const declared = env.REDIS_SERVER_BIN
  if (declared) {
    if (isExecutable(declared)) return declared
    throw new Error(
      `REDIS_SERVER_BIN is ${declared}, which is not an executable file. Correct or unset it.`,
    )
  }
  return findOnPath(SERVER_NAMES, env.PATH ?? '')
}

function findOnPath(names: readonly string[], path: string): string | undefined {
  const folders = path.split(delimiter).filter((folder) => folder !== '')
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

/** Tries to install a server and returns what went wrong, or a note that nothing did. */
function installRedis(): string {
  const has = (name: string) => findOnPath([name], process.env.PATH ?? '') !== undefined
  if (has('brew')) return run(['brew', 'install', 'redis'])
  if (!has('apt-get')) return 'there is neither apt-get nor brew'
  const prefix = rootPrefix(has('sudo'))
  if (prefix === undefined) return 'apt-get needs root, and sudo asks for a password or is missing'
  // RUNLEVEL=1 keeps the package from starting a system service: each test starts a server of its own.
  const apt = [...prefix, 'env', 'DEBIAN_FRONTEND=noninteractive', 'RUNLEVEL=1', 'apt-get', '-q']
  const update = run([...apt, 'update'])
  const install = run([...apt, 'install', '-y', '--no-install-recommends', 'redis-server'])
  return `${update}; ${install}`
}

function rootPrefix(hasSudo: boolean): string[] | undefined {
  if (process.getuid?.() === 0) return []
  const passwordless =
    hasSudo && spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore', timeout: 10_000 }).status === 0
  return passwordless ? ['sudo', '-n'] : undefined
}

function run(command: readonly string[]): string {
  const text = command.join(' ')
  console.log(`No Redis server found, running: ${text}`)
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
