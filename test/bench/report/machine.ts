import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { cpus, loadavg, release, totalmem, type } from 'node:os'
import { join } from 'node:path'

/** Where it was measured. */
export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly memoryGb: number
  readonly os: string
  /** How busy the machine was when the benchmark began: figures of a busy one are too high. */
  readonly loadAverage: number
}

export function describeMachine(): Machine {
  const [first] = cpus()
  return {
    cpu: first?.model ?? 'unknown',
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    os: `${type()} ${release()}`,
    loadAverage: loadavg()[0] ?? 0,
  }
}

/** The versions that are installed. */
export function versionsOf(packages: readonly string[]): Record<string, string> {
  const installed = packages.map((name) => [name, versionOf(name)])
  return { node: process.versions.node, ...Object.fromEntries(installed) }
}

/** Read from where Node would look: not every package exports its manifest. */
function versionOf(name: string): string {
  const folders = createRequire(import.meta.url).resolve.paths(name) ?? []
  for (const folder of folders) {
    const version = versionIn(join(folder, name, 'package.json'))
    if (version !== undefined) return version
  }
  return 'not found'
}

function versionIn(file: string): string | undefined {
  try {
    const manifest: unknown = JSON.parse(readFileSync(file, 'utf8'))
    const isObject = typeof manifest === 'object' && manifest !== null
    return isObject && 'version' in manifest ? String(manifest.version) : undefined
  } catch {
    // Not in this folder: Node looks in the next one too.
    return undefined
  }
}
