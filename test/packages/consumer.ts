import { cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { run } from '../support/run.ts'
import { readManifest } from '../support/workspace.ts'
import { packAll, type Tarball } from './tarballs.ts'

/** What a user has beside our packages: the peers, and types for the TypeScript program. */
const PEERS = ['express', 'fastify', 'ioredis', 'redis', '@types/express', '@types/node']

/** The programs of `consumer/` that use every package, one per module system. */
export const programs = ['esm.mjs', 'cjs.cjs'] as const

export interface Consumer {
  folder: string
  tarballs: Tarball[]
}

/** Turns an empty folder into a project that has installed our tarballs, as a user's project does. */
export async function installConsumer(folder: string): Promise<Consumer> {
  const tarballs = await packAll(folder)
  const versions = availableVersions()
  const dependencies = Object.fromEntries([
    ...tarballs.map(({ name, path }) => [name, `file:${path}`]),
    ...PEERS.map((name) => [name, versions[name] ?? '*']),
  ])
  await cp(fileURLToPath(new URL('./consumer', import.meta.url)), folder, { recursive: true })
  await writeFile(
    join(folder, 'package.json'),
    JSON.stringify({ name: 'consumer', private: true, dependencies }),
  )
  await run('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund'], { cwd: folder })
  return { folder, tarballs }
}

/** Runs one program of the consumer with the given Node binary, and resolves to what it printed. */
export function runProgram(
  { folder }: Consumer,
  program: string,
  node: string = process.execPath,
): Promise<string> {
  return run(node, [program], { cwd: folder, timeoutMs: 30_000 })
}

function availableVersions(): Record<string, string> {
  const manifests = [readManifest('.'), readManifest('test')]
  return Object.assign({}, ...manifests.map(({ devDependencies }) => devDependencies))
}
