import { isBuiltin } from 'node:module'
import { posix } from 'node:path'
import type { Manifest } from '../support/workspace.ts'

/** The arrows of the design: each package, and the packages that it may import. */
export const arrows: Readonly<Record<string, readonly string[]>> = {
  core: [],
  headers: [],
  client: ['headers'],
  redis: ['core'],
  postgres: ['core'],
  http: ['core', 'headers'],
  express: ['http'],
  fastify: ['http'],
  koa: ['http'],
  fetch: ['http'],
  hono: ['http', 'fetch'],
  nest: ['http', 'express', 'fastify'],
  queue: ['core', 'headers', 'http'],
  outbound: ['core', 'headers'],
  metrics: ['core', 'http'],
  policies: ['core', 'http'],
  admin: ['core', 'http', 'metrics', 'policies', 'queue'],
  testing: ['core', 'headers', 'http', 'queue'],
  cli: ['core', 'http', 'policies', 'redis'],
}

/** Packages that run anywhere, browsers and edge runtimes included. */
const withoutNode: ReadonlySet<string> = new Set(['core', 'headers', 'client', 'fetch', 'hono'])

const SCOPE = '@sluice/'

/** Entries beside the main one, each with its package. */
const secondEntries: ReadonlyMap<string, string> = new Map([
  ['@sluice/core/backend', '@sluice/core'],
  ['@sluice/http/adapter', '@sluice/http'],
  ['@sluice/http/exports', '@sluice/http'],
  ['@sluice/express/adapter', '@sluice/express'],
  ['@sluice/fastify/adapter', '@sluice/fastify'],
  ['@sluice/fetch/adapter', '@sluice/fetch'],
  ['@sluice/metrics/prometheus', '@sluice/metrics'],
  ['@sluice/metrics/opentelemetry', '@sluice/metrics'],
  ['@sluice/queue/rabbitmq', '@sluice/queue'],
  ['@sluice/testing/histories', '@sluice/testing'],
])

export interface ImportSite {
  /** The importing file, relative to the root: `packages/http/src/guard.ts`. */
  file: string
  specifier: string
  manifest: Manifest
}

/** What is wrong with one import, or `undefined`. */
export function judgeImport({ file, specifier, manifest }: ImportSite): string | undefined {
  const name = packageOf(file)
  const refuse = (reason: string) => `${file} imports '${specifier}': ${reason}`
  if (specifier === '(computed)') return refuse('a computed specifier cannot be checked')
  if (/^(\/|[a-z]+:\/\/)/i.test(specifier)) return refuse('neither absolute paths nor URLs')
  if (specifier.startsWith('.')) return judgeRelative(file, specifier, refuse)
  if (specifier.startsWith(SCOPE)) return judgeInternal(name, specifier, refuse)
  if (isBuiltin(specifier)) {
    if (withoutNode.has(name)) return refuse(`${name} runs anywhere and has no Node built-ins`)
    return specifier.startsWith('node:') ? undefined : refuse(`write node:${specifier}`)
  }
  // The build bundles what stands in devDependencies.
  const declared = {
    ...manifest.dependencies,
    ...manifest.peerDependencies,
    ...manifest.devDependencies,
  }
  if (baseName(specifier) in declared) return undefined
  return refuse(`${name} does not declare it`)
}

/** What is wrong with the internal dependencies that a package declares. */
export function judgeManifest(folder: string, manifest: Manifest): string[] {
  const name = posix.basename(folder)
  const allowed = arrows[name]
  if (allowed === undefined)
    return [`${folder} has no arrows: add it to the design and to this test`]
  const runtime = { ...manifest.dependencies, ...manifest.peerDependencies }
  const all = { ...runtime, ...manifest.devDependencies, ...manifest.optionalDependencies }
  const internal = (names: object) =>
    Object.keys(names)
      .filter((dependency) => dependency.startsWith(SCOPE))
      .map((dependency) => dependency.slice(SCOPE.length))
  const forbidden = internal(all).filter((dependency) => !allowed.includes(dependency))
  return [
    ...forbidden.map((dependency) => `${folder} may not depend on ${SCOPE}${dependency}`),
    ...(manifest.name === SCOPE + name ? [] : [`${folder} is named ${manifest.name}`]),
  ]
}

function judgeRelative(file: string, specifier: string, refuse: (reason: string) => string) {
  const target = posix.join(posix.dirname(file), specifier)
  const home = `packages/${packageOf(file)}/src/`
  if (!target.startsWith(home)) return refuse(`it leaves ${home}`)
  return specifier.endsWith('.ts') ? undefined : refuse('relative imports carry .ts')
}

function judgeInternal(name: string, specifier: string, refuse: (reason: string) => string) {
  const target = (secondEntries.get(specifier) ?? specifier).slice(SCOPE.length)
  if (target.includes('/')) return refuse('a package is used through its entries only')
  const allowed = arrows[name] ?? []
  if (allowed.includes(target)) return undefined
  return refuse(`${name} may import ${allowed.join(', ') || 'no package of ours'}`)
}

function packageOf(file: string): string {
  return file.split('/')[1] ?? ''
}

/** `@scope/name/deep` is of `@scope/name`, `name/deep` of `name`. */
function baseName(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
}
