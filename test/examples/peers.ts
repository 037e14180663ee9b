import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { root } from '../support/workspace.ts'
import { declaredNames } from './declared-names.ts'

/** The peers are installed for the benchmark, and for nobody else. */
export const bench: string = join(root, 'test/bench')

export interface Peer {
  readonly name: string
  /** The section that it is told in. */
  readonly section: string
  /** The file of its declarations, or the folder of all of them. */
  readonly types: string
  /** Declarations that nobody writes: what a logger looks like, the inside of a store, what a dump consists of. */
  readonly leaveOut: readonly string[]
  /** Names that are no options: parts of what somebody is handed. */
  readonly noOptions: readonly string[]
}

export const peers: readonly Peer[] = [
  {
    name: 'express-rate-limit',
    section: 'express-rate-limit',
    types: 'dist/index.d.ts',
    leaveOut: ['Logger', 'Client', 'MemoryStore', 'SUPPORTED_DRAFT_VERSIONS'],
    noOptions: ['validations', 'enabled', 'disable'],
  },
  {
    name: 'rate-limit-redis',
    section: 'express-rate-limit',
    types: 'dist/index.d.ts',
    leaveOut: ['SendCommandClusterDetails', 'RedisStore'],
    noOptions: [],
  },
  {
    name: '@fastify/rate-limit',
    section: '@fastify/rate-limit',
    types: 'types/index.d.ts',
    leaveOut: ['fastifyRateLimit'],
    noOptions: ['path', 'prefix', 'current'],
  },
  {
    name: 'hono-rate-limiter',
    section: 'hono-rate-limiter',
    types: 'dist/index.d.ts',
    leaveOut: ['RedisClient', 'RedisStore', 'UnstorageInstance', 'UnstorageStore', 'MemoryStore'],
    noOptions: [],
  },
  {
    name: 'rate-limiter-flexible',
    section: 'rate-limiter-flexible',
    types: 'types.d.ts',
    leaveOut: [
      'IRateLimiterMemoryRecord',
      'IRateLimiterMemoryExport',
      'IRateLimiterRestoreResult',
      'IRateLimiterRestoreBucketDetail',
    ],
    noOptions: ['name', 'message', 'extra'],
  },
  {
    name: '@nestjs/throttler',
    section: '@nestjs/throttler',
    types: 'dist',
    leaveOut: [
      'DEFAULT_SWEEP_INTERVAL',
      'ThrottlerLimitDetail',
      'ThrottlerRequest',
      'ThrottlerStorageOptions',
      'ThrottlerStorageRecord',
      'throttlerMessage',
    ],
    noOptions: [
      ...['reflector', 'logger', 'options', 'commonOptions', 'ThrottlerGuard', 'sweepIntervalMs'],
      ...['req', 'res', 'provide'],
    ],
  },
]

/** What a user of a peer can write, call or read. */
export function namesOf({ name, types, leaveOut, noOptions }: Peer): readonly string[] {
  const path = join(folderOf(name), types)
  const files = types.endsWith('.d.ts')
    ? [path]
    : readdirSync(path)
        .filter((file) => file.endsWith('.d.ts'))
        .map((file) => join(path, file))
  const declarations = files.map((file) => readFileSync(file, 'utf8')).join('\n')
  return [...declaredNames(declarations, leaveOut)].filter((found) => !noOptions.includes(found))
}

/** The part of the version that a breaking change raises: `8`, or `0.5`. */
export function majorOf({ name }: Peer): string {
  const manifest = readFileSync(join(folderOf(name), 'package.json'), 'utf8')
  const { version } = JSON.parse(manifest) as { version: string }
  return /^(?:0\.)?\d+/.exec(version)?.[0] ?? version
}

function folderOf(name: string): string {
  const paths = createRequire(join(bench, 'package.json')).resolve.paths(name) ?? []
  const folder = paths.map((path) => join(path, name)).find((path) => existsSync(path))
  if (folder === undefined) throw new Error(`${name} is not installed`)
  return folder
}
