import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export interface Manifest {
  name: string
  version?: string
  private?: boolean
  description?: string
  repository?: { type: string; url: string; directory?: string }
  homepage?: string
  bugs?: { url: string }
  keywords?: string[]
  scripts?: Record<string, string>
  files?: string[]
  exports?: Record<string, unknown>
  bin?: Record<string, string>
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
}

export interface Workspace {
  /** The folder relative to the root of the repository, with forward slashes: `packages/core`. */
  folder: string
  manifest: Manifest
}

/** The root of the repository, with a slash at its end. */
export const root: string = fileURLToPath(new URL('../../', import.meta.url))

export function readText(path: string): string {
  return readFileSync(root + path, 'utf8')
}

export function readManifest(folder: string): Manifest {
  return JSON.parse(readText(`${folder}/package.json`)) as Manifest
}

export function packages(): Workspace[] {
  return workspacesIn('packages')
}

export function workspaces(): Workspace[] {
  return [
    ...packages(),
    ...workspacesIn('examples'),
    { folder: 'test', manifest: readManifest('test') },
  ]
}

/** Files under a folder, recursively, relative to the root; none when the folder does not exist. */
export function filesUnder(folder: string, extension: string): string[] {
  const skipped = new Set(['node_modules', 'dist', '.tsc'])
  const found: string[] = []
  for (const entry of entriesOf(folder)) {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory() && !skipped.has(entry.name)) found.push(...filesUnder(path, extension))
    if (entry.isFile() && entry.name.endsWith(extension)) found.push(path)
  }
  return found.sort()
}

function workspacesIn(parent: string): Workspace[] {
  return entriesOf(parent)
    .filter((entry) => entry.isDirectory())
    .map((entry) => `${parent}/${entry.name}`)
    .sort()
    .map((folder) => ({ folder, manifest: readManifest(folder) }))
}

function entriesOf(folder: string) {
  try {
    return readdirSync(root + folder, { withFileTypes: true })
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
}
