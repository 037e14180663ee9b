import { findOnPath, installPackage, isExecutable } from './system-package.ts'

const SERVER_NAMES = ['redis-server', 'valkey-server']

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

/** Tries to install a server and returns what went wrong, or a note that nothing did. */
function installRedis(): string {
  return installPackage({ brew: ['install', 'redis'], apt: ['redis-server'], what: 'Redis server' })
}
