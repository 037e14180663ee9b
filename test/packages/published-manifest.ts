import { type Manifest, readManifest, type Workspace } from '../support/workspace.ts'

const left = ['devDependencies', 'files', 'publishConfig']

/**
 * The manifest that a package is published with. Each entry of `exports` that names a source becomes an ESM and a CommonJS file with types for both;
 * `main`, `types` and `typesVersions` say the same to what does not read `exports`. The repository and the site are those of the
 * project.
 */
export function publishedManifest({ folder, manifest }: Workspace): Record<string, unknown> {
  const { repository, homepage, bugs } = readManifest('.')
  const entries = Object.entries(manifest.exports ?? {})
  const names = namesByPath(manifest)
  const kept = Object.entries(manifest).filter(([field]) => !left.includes(field))
  const main = names.get('.')
  const others = [...names].filter(([path]) => path !== '.')
  return {
    ...Object.fromEntries(kept),
    repository: { ...repository, directory: folder },
    homepage,
    bugs,
    ...(main && { main: `./dist/${main}.cjs`, types: `./dist/${main}.d.cts` }),
    ...(others.length > 0 && {
      typesVersions: {
        '*': Object.fromEntries(
          others.map(([path, name]) => [path.slice('./'.length), [`./dist/${name}.d.cts`]]),
        ),
      },
    }),
    exports: Object.fromEntries(
      entries.map(([path, target]) => {
        const name = names.get(path)
        return [path, name === undefined ? target : conditions(name)]
      }),
    ),
  }
}

/** The names of the files that the build makes, without what follows the first dot: `index`. */
export function entryNames(manifest: Manifest): Iterable<string> {
  return namesByPath(manifest).values()
}

function namesByPath(manifest: Manifest): Map<string, string> {
  const names = new Map<string, string>()
  for (const [path, target] of Object.entries(manifest.exports ?? {})) {
    const name = sourceName(target)
    if (name !== undefined) names.set(path, name)
  }
  return names
}

/** `index` of `{ '@sluice/source': './src/index.ts' }`. */
function sourceName(target: unknown): string | undefined {
  if (typeof target !== 'object' || target === null) return undefined
  const source: unknown = Reflect.get(target, '@sluice/source')
  return typeof source === 'string' ? /^\.\/src\/(.+)\.ts$/.exec(source)?.[1] : undefined
}

/** Node takes `module-sync` for `import` and `require` alike, so that it loads one instance of the package. */
function conditions(name: string): object {
  const esm = { types: `./dist/${name}.d.ts`, default: `./dist/${name}.js` }
  const cjs = { types: `./dist/${name}.d.cts`, default: `./dist/${name}.cjs` }
  return { 'module-sync': esm, import: esm, require: cjs }
}
