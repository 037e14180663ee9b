import { cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { run } from '../support/run.ts'
import { readManifest } from '../support/workspace.ts'
import { packAll, type Tarball } from './tarballs.ts'

/**
 * What a user has beside our packages: the peers, and types for the TypeScript program. Those of Koa are not there: beside Express they find
 * `content-disposition` 2, and do not fit to it.
 */
const PEERS = [
  ...['@nestjs/common', '@nestjs/core', '@nestjs/platform-express', 'reflect-metadata', 'rxjs'],
  ...['express', 'fastify', 'hono', 'ioredis', 'koa', 'redis', '@types/express', '@types/node'],
]

/** With it Node cannot `require` an ES module, so that the CommonJS builds are loaded, as in Jest and in older bundlers. */
const noRequireOfEsm = '--no-experimental-require-module'

/** What is run of `consumer/`: every package by each module system, and two copies of each in one process. */
export const programs: readonly (readonly string[])[] = [
  ['esm.mjs'],
  ['node-test.mjs'],
  ['cjs.cjs'],
  ['one.mjs'],
  ['nest.mjs'],
  [noRequireOfEsm, 'cjs.cjs'],
  [noRequireOfEsm, 'both.mjs'],
  [noRequireOfEsm, 'receipts.mjs'],
]

export interface Consumer {
  folder: string
  tarballs: Tarball[]
}

/**
 * Turns an empty folder into a project that has installed our packages, as a user's project does.
 * @param tools further packages, by their versions
 * @param registry where the packages come from
 * @default registry their tarballs
 */
export async function installConsumer(
  folder: string,
  tools: Record<string, string> = {},
  registry?: string,
): Promise<Consumer> {
  const tarballs = await packAll()
  const versions = availableVersions()
  const peers = Object.fromEntries(PEERS.map((name) => [name, versions[name] ?? '*']))
  const ours = tarballs.map(({ name, path }) => [name, registry ? 'latest' : `file:${path}`])
  await cp(fileURLToPath(new URL('./consumer', import.meta.url)), folder, { recursive: true })
  const dependencies = { ...Object.fromEntries(ours), ...peers, ...tools }
  await install(folder, { dependencies }, registry)
  return { folder, tarballs }
}

/**
 * Installs some of our packages in a project, and what else it needs.
 * @param names the packages without their scope
 * @param dependencies the versions of all others
 * @param more what else its package.json has
 */
export async function installPacked(
  folder: string,
  names: readonly string[],
  { dependencies, more }: { dependencies: Record<string, string>; more?: object },
): Promise<void> {
  const wanted = names.map((name) => `@sluice/${name}`)
  const tarballs = (await packAll()).filter(({ name }) => wanted.includes(name))
  const ours = Object.fromEntries(tarballs.map(({ name, path }) => [name, path]))
  await install(folder, { ...more, dependencies: { ...ours, ...dependencies } })
}

async function install(folder: string, manifest: object, registry?: string): Promise<void> {
  const text = JSON.stringify({ name: 'consumer', private: true, ...manifest })
  await writeFile(join(folder, 'package.json'), text)
  const from = registry ? ['--registry', registry] : ['--prefer-offline']
  const args = ['install', '--no-audit', '--no-fund', ...from]
  await run('npm', args, { cwd: folder, timeoutMs: 300_000 })
}

export function runProgram(
  { folder }: Consumer,
  program: readonly string[],
  node: string = process.execPath,
): Promise<string> {
  return run(node, program, { cwd: folder, timeoutMs: 60_000 })
}

function availableVersions(): Record<string, string> {
  const manifests = [readManifest('.'), readManifest('test')]
  return Object.assign({}, ...manifests.map(({ devDependencies }) => devDependencies))
}
