import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { run } from '../support/run.ts'
import { packages, root } from '../support/workspace.ts'

export interface Tarball {
  /** `@sluice/core` */
  name: string
  path: string
}

/** Builds what has changed, and packs every package as it is published. */
export async function packAll(folder: string): Promise<Tarball[]> {
  const build = ['--import', 'tsx', 'test/packages/build.ts']
  await run(process.execPath, build, { cwd: root, timeoutMs: 600_000 })
  const staged = packages().map((workspace) => `./${workspace.folder}/.staged/package`)
  await run('npm', ['pack', '--pack-destination', folder, ...staged], { cwd: root })
  return packages().map(({ manifest: { name, version } }) => {
    const file = `${name.replace('@', '').replace('/', '-')}-${version}.tgz`
    if (!readdirSync(folder).includes(file)) throw new Error(`npm pack did not write ${file}`)
    return { name, path: join(folder, file) }
  })
}
