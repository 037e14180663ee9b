import { randomUUID } from 'node:crypto'
import { mkdir, readFile, rename } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build, type Plugin } from 'esbuild'
import { root } from './workspace.ts'

/** Puts the sources of this repository into a bundle, where they still know their own places; all else is loaded from node_modules. */
const ownSources: Plugin = {
  name: 'own sources',
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^[^./]/ }, ({ path }) =>
      path.startsWith('@sluice/') ? undefined : { path, external: true },
    )
    onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const url = JSON.stringify(pathToFileURL(path).href)
      const text = await readFile(path, 'utf8')
      return { contents: text.replaceAll('import.meta.url', url), loader: 'ts' }
    })
  },
}

/**
 * Bundles a script with the sources that it imports. Its processes start in a third of the time that `--import tsx` takes, which finds and
 * transforms some 200 files in each process.
 * @param packages the packages of another version, in place of those here
 * @returns the path of the bundle, for `fork` with no `execArgv`
 */
export async function bundledScript(script: URL, packages?: string): Promise<string> {
  const path = fileURLToPath(script)
  const folder = join(root, 'test/node_modules/.cache/sluice')
  const name = relative(root, path).replaceAll('/', '-').replace(/\.ts$/, '')
  const bundle = join(folder, `${name}${packages ? '-of-another-version' : ''}.mjs`)
  const fresh = `${bundle}.${randomUUID()}`
  await mkdir(folder, { recursive: true })
  await build({
    ...{ entryPoints: [path], outfile: fresh, bundle: true },
    ...{ format: 'esm', platform: 'node', target: 'node20' },
    ...(packages && { alias: sourcesIn(packages) }),
    ...{ conditions: ['@sluice/source'], plugins: [ownSources], logLevel: 'error' },
  })
  // Files of tests run side by side: none of their processes may load half of a bundle.
  await rename(fresh, bundle)
  return bundle
}

function sourcesIn(packages: string): Record<string, string> {
  return {
    '@sluice/core/backend': `${packages}/core/src/backend.ts`,
    '@sluice/core': `${packages}/core/src/index.ts`,
    '@sluice/redis': `${packages}/redis/src/index.ts`,
  }
}
