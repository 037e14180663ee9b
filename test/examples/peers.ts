import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { root } from '../support/workspace.ts'

/** The peers are installed for the benchmark, and for nobody else. */
export const bench: string = join(root, 'test/bench')

export interface Peer {
  readonly name: string
  /** The section that it is told in. */
  readonly section: string
  /** The file of its declarations, or the folder of all of them. */
  readonly types: string
  /** Names that nobody writes: the inside of a store, what a logger looks like, parts of what somebody is handed. */
  readonly leaveOut: string
}

export const peers: readonly Peer[] = [
  peer(
    'express-rate-limit',
    'dist/index.d.ts',
    'current disable enabled error interval previous validations warn MemoryStore SUPPORTED_DRAFT_VERSIONS',
  ),
  {
    ...{ name: 'rate-limit-redis', section: 'express-rate-limit', types: 'dist/index.d.ts' },
    leaveOut:
      'command decrement get getScriptSha increment incrementScriptSha init isReadOnly key loadGetScript loadIncrementScript prefixKey resetKey retryableIncrement windowMs RedisStore',
  },
  peer(
    '@fastify/rate-limit',
    'types/index.d.ts',
    'callback context current error fastifyRateLimit new path prefix req result routeOptions',
  ),
  peer(
    'hono-rate-limiter',
    'dist/index.d.ts',
    'current decr decrementScriptSha del evalsha getScriptSha incrementScriptSha interval loadDecrementScript loadGetScript loadIncrementScript prefixKey previous remove retryableDecrement retryableIncrement scriptLoad set storage MemoryStore RedisStore UnstorageStore',
  ),
  peer(
    'rate-limiter-flexible',
    'types.d.ts',
    'burstLimiter count dumpedAt expired expiresAt extra invalid key keys limiterFlexible message name options opts pointsToConsume rateLimiter restored secDuration storage value version',
  ),
  peer(
    '@nestjs/throttler',
    'dist',
    'blockExpiresAt commonOptions context expiresAt isBlocked key logger options provide reflector req res sweepIntervalMs throttler throttlerMessage timeToBlockExpire timeToExpire totalHits tracker DEFAULT_SWEEP_INTERVAL ThrottlerGuard ThrottlerStorageOptions ThrottlerStorageRecord',
  ),
]

function peer(name: string, types: string, leaveOut: string): Peer {
  return { name, section: name, types, leaveOut }
}

/** What a user of a peer can write, call or read: fields and methods of its types, and its classes and constants. */
export function namesOf({ name, types, leaveOut }: Peer): readonly string[] {
  const path = join(folderOf(name), types)
  const files = types.endsWith('.d.ts')
    ? [path]
    : readdirSync(path)
        .filter((file) => file.endsWith('.d.ts'))
        .map((file) => join(path, file))
  const texts = files.map((file) => readFileSync(file, 'utf8')).join('\n')
  const declarations = texts.replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')
  const member =
    /(?:^\s+|\{ )(?!private)(?:(?:readonly|static|protected|get|set) )*['"]?([\w-]+)['"]?\??\s*[(<:]/gm
  const found = [member, /\b(?:class|const|let) (\w+)/g].flatMap((form) =>
    [...declarations.matchAll(form)].map(([, found = '']) => found),
  )
  const known = ['constructor', ...leaveOut.split(' ')]
  return [...new Set(found)].filter((found) => !known.includes(found))
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
