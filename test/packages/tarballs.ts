import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { run } from '../support/run.ts'
import { packages, root } from '../support/workspace.ts'

export interface Tarball {
  /** `@sluice/core` */
  name: string
  path: string
}

/** Packs every package as it would be published; `dist` must have been built. */
export async function packAll(folder: string): Promise<Tarball[]> {
  const names = packages().map(({ manifest }) => manifest.name)
  const selection = names.flatMap((name) => ['--workspace', name])
  await run('npm', ['pack', '--pack-destination', folder, ...selection], { cwd: root })
  return packages().map(({ manifest: { name, version } }) => {
    const file = `${name.replace('@', '').replace('/', '-')}-${version}.tgz`
    if (!readdirSync(folder).includes(file)) throw new Error(`npm pack did not write ${file}`)
    return { name, path: join(folder, file) }
  })
}

export function buildAll(): Promise<string> {
  return run(join(root, 'node_modules/.bin/tsc'), ['-b'], { cwd: root })
}
