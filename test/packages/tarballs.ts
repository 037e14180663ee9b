import { existsSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { run } from '../support/run.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { packages, root, type Workspace } from '../support/workspace.ts'

export interface Tarball {
  /** `@sluice/core` */
  name: string
  path: string
}

/**
 * Builds what has changed, and packs it as it is published. A tarball lies beside its staged package: the next build of the package
 * removes both, so that each build is packed once.
 */
export async function packAll(): Promise<Tarball[]> {
  const build = ['--import', 'tsx', 'test/packages/build.ts']
  await run(process.execPath, build, { cwd: root, timeoutMs: 600_000 })
  const missing = packages().filter((workspace) => !existsSync(tarballOf(workspace).path))
  if (missing.length > 0) await pack(missing)
  return packages().map(tarballOf)
}

async function pack(missing: readonly Workspace[]): Promise<void> {
  // Beside the tarballs: a rename must not leave the file system.
  using fresh = temporaryFolder('packed', join(root, 'node_modules'))
  const staged = missing.map(({ folder }) => `./${folder}/.staged/package`)
  await run('npm', ['pack', '--pack-destination', fresh.path, ...staged], { cwd: root })
  for (const { path } of missing.map(tarballOf)) {
    await rename(join(fresh.path, basename(path)), path)
  }
}

function tarballOf({ folder, manifest: { name, version } }: Workspace): Tarball {
  const file = `${name.replace('@', '').replace('/', '-')}-${version}.tgz`
  return { name, path: join(root, folder, '.staged', file) }
}
