import { hash } from 'node:crypto'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { cp, mkdir, readdir, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build as bundle, transform } from 'esbuild'
import { run } from '../support/run.ts'
import { filesUnder, packages, readText, root, type Workspace } from '../support/workspace.ts'
import { entryNames, publishedManifest } from './published-manifest.ts'

// Builds every package that has changed since its last build: `packages/*/.staged/package` is what is published, without
// sources, and `packages/*/dist` is a copy of what was built.

/** What the build of each package depends on besides its own files. */
const shared = [
  'package-lock.json',
  'package.json',
  'tsconfig.json',
  'test/packages/build.ts',
  'test/packages/published-manifest.ts',
].map(readText)

/** Folders whose texts the build puts into the scripts, with the function that reads them from the sources; pages compressed. */
const inlined: ReadonlyMap<string, { reader: string; end: string }> = new Map([
  ['lua', { reader: 'readLua', end: '.lua' }],
  ['page', { reader: 'readPage', end: '' }],
  ['sql', { reader: 'readSql', end: '.sql' }],
])

const strategies = ['http-method', 'accept-host', 'accept-version'].map(
  (name) => `strategies/${name}`,
)

/** The router and its libraries, with the modules that no call of ours reaches: 48 KB of both forms. */
const router: ReadonlyMap<string, readonly string[]> = new Map([
  ['find-my-way', ['compiler', 'pretty-print', ...strategies].map((name) => `lib/${name}.js`)],
  ['fast-querystring', ['lib/index.js']],
  ['safe-regex2', []],
  ['ret', ['dist/reconstruct.js', 'dist/write-set-tokens.js']],
])

/** What every adapter loads has one module with several entries: each file adds 1 ms of CPU to the start. */
const joined = new Set(['@sluice/core', '@sluice/http'])

const waiting = packages()
await Promise.all([buildWaiting(), buildWaiting()])

async function buildWaiting(): Promise<void> {
  for (let next = waiting.shift(); next; next = waiting.shift()) await build(next)
}

function filesAt(path: string): string[] {
  return statSync(join(root, path)).isFile() ? [path] : filesUnder(path, '')
}

async function build(workspace: Workspace): Promise<void> {
  const { folder, manifest } = workspace
  const sources = ['src', ...inlined.keys()].flatMap((part) => filesUnder(`${folder}/${part}`, ''))
  const beside = ['README.md', 'LICENSE', 'package.json'].map((file) => `${folder}/${file}`)
  const shipped = (manifest.files ?? []).filter((part) => part !== 'dist')
  const data = shipped.flatMap((part) => filesAt(`${folder}/${part}`))
  const texts = [...sources, ...beside, ...data].flatMap((file) => [file, readText(file)])
  const digest = hash('sha256', JSON.stringify([shared, texts]))
  const digestFile = join(root, folder, '.staged/digest')
  const dist = join(root, folder, 'dist')
  if (existsSync(dist) && existsSync(digestFile) && readFileSync(digestFile, 'utf8') === digest)
    return

  const staged = join(root, folder, '.staged')
  const work = join(staged, 'package')
  await rm(staged, { recursive: true, force: true })
  await mkdir(work, { recursive: true })
  for (const part of ['src', 'README.md', ...shipped]) {
    await cp(join(root, folder, part), join(work, part), { recursive: true })
  }
  for (const part of inlined.keys()) await inlineTexts(folder, part, work)
  const { compilerOptions } = JSON.parse(readText(`${folder}/tsconfig.json`))
  await writeJson(join(work, 'tsconfig.json'), {
    extends: '../../../../tsconfig.json',
    compilerOptions: { ...compilerOptions, rootDir: '../../../..' },
    include: ['src'],
  })
  const published = publishedManifest(workspace)
  // Without types for ESM: those of CommonJS hold for both.
  const types = JSON.stringify(published).replaceAll('.d.ts"', '.d.cts"')
  await writeJson(join(work, 'package.json'), {
    ...JSON.parse(types),
    devDependencies: manifest.devDependencies,
  })
  for (const [library, unreached] of manifest.devDependencies?.['find-my-way'] ? router : []) {
    const copy = join(work, 'node_modules', library)
    await cp(join(root, 'node_modules', library), copy, { recursive: true })
    for (const file of unreached) await truncate(join(copy, file))
    if (library === 'find-my-way') await loadLate(copy)
  }
  const pkgroll = join(root, 'node_modules/.bin/pkgroll')
  // In a file of its own: pkgroll rewrites it from several bundles at once, and ours would be lost in between.
  const bundled = join(work, 'bundled.txt')
  const licence = `--license=${bundled}`
  await run(pkgroll, ['--target=node20.19', licence], { cwd: work, timeoutMs: 480_000 })
  const licences = [readText(`${folder}/LICENSE`), await readFile(bundled, 'utf8')]
  await writeFile(join(work, 'LICENSE'), `${licences.map((text) => text.trim()).join('\n\n')}\n`)
  await rm(bundled)
  await finishScripts(join(work, 'dist'), manifest.version ?? '')
  if (joined.has(manifest.name)) await joinModules(join(work, 'dist'), entryNames(manifest))
  await writeEsmTypes(join(work, 'dist'), entryNames(manifest))
  await writeJson(join(work, 'package.json'), published)
  for (const part of ['src', 'tsconfig.json', 'node_modules']) {
    await rm(join(work, part), { recursive: true, force: true })
  }
  await rm(dist, { recursive: true, force: true })
  await cp(join(work, 'dist'), `${dist}.new`, { recursive: true })
  await rename(`${dist}.new`, dist)
  await writeFile(digestFile, digest)
  console.log(`built ${manifest.name}`)
}

/** Has the first table of routes load the router: it takes 3 ms of CPU, and `node:assert`. */
async function loadLate(copy: string): Promise<void> {
  const assert = `(isTrue, message) => { if (!isTrue) throw new Error(message) }`
  for (const file of ['index.js', 'lib/constrainer.js']) {
    const text = await readFile(join(copy, file), 'utf8')
    await writeFile(join(copy, file), text.replace(`require('node:assert')`, assert))
  }
  await rename(join(copy, 'index.js'), join(copy, 'router.js'))
  await writeFile(join(copy, 'index.js'), `module.exports = (of) => require('./router.js')(of)\n`)
}

/** Puts texts in the place of what reads them from files: a bundle has no files beside it. */
async function inlineTexts(folder: string, part: string, work: string): Promise<void> {
  const { reader, end } = inlined.get(part) ?? { reader: '', end: '' }
  const files = filesUnder(`${folder}/${part}`, end)
  if (files.length === 0) return
  const nameOf = (file: string): string => file.slice(`${folder}/${part}/`.length).replace(end, '')
  const isPacked = part === 'page'
  const packed = (text: string) => gzipSync(text, { level: 9 }).toString('base64')
  // Comments of scripts stay here, so that a script's hash does not depend on them.
  const bare = (text: string) => (end === '.lua' ? text.replace(/^ *--.*\n/gm, '') : text)
  const textOf = (file: string) => (isPacked ? packed(readText(file)) : bare(readText(file)))
  const texts = Object.fromEntries(files.map((file) => [nameOf(file), textOf(file)]))
  const found = 'texts[name] ?? ""'
  const [type, value] = isPacked
    ? ['Uint8Array', `Buffer.from(${found}, "base64")`]
    : ['string', found]
  const source = join(work, `src/${kebab(reader)}.ts`)
  // The texts of redis are generated.
  if (!existsSync(source)) return
  await writeFile(
    source,
    `const texts: { readonly [name: string]: string } = ${JSON.stringify(texts, null, 2)}\n` +
      `export function ${reader}(name: string): ${type} {\n  return ${value}\n}\n`,
  )
}

function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

/**
 * Leaves docstrings to the types, and writes scripts and types with fewer bytes. Has CommonJS require what it would import: Jest
 * cannot do `import()` without a flag of Node, and has the core know its version.
 */
async function finishScripts(dist: string, version: string): Promise<void> {
  for (const file of await readdir(dist, { recursive: true })) {
    const isScript = /\.c?js$/.test(file)
    if (!isScript && !file.endsWith('.d.cts')) continue
    const text = await readFile(join(dist, file), 'utf8')
    const isModule = file.endsWith('.js')
    const compact = isScript ? await shortened(text, version, isModule) : byTabs(text)
    const late = 'Promise.resolve().then(() => require($1))'
    const asked = compact.replace(/\bimport\(("[^"]+")\)/g, late)
    await writeFile(join(dist, file), file.endsWith('.cjs') ? asked : compact)
  }
}

/**
 * Shortens a script. The functions of a module keep their names, and its lines stay short, so that a stack trace can be read. Without
 * imports and exports it is a script, and esbuild renames nothing at the top of a script. Node loads modules; CommonJS is for Jest and
 * older bundlers.
 */
async function shortened(text: string, version: string, isModule: boolean): Promise<string> {
  const [, head = '', body = '', tail = ''] =
    /^((?:(?:import|export|#!)[^\n]*\n|\n)*)(.*?)((?:export [^\n]*\n)*)$/s.exec(text) ?? []
  const { code } = await transform(body, {
    minifySyntax: true,
    minifyWhitespace: true,
    // The few inner functions of an adapter keep their names too.
    minifyIdentifiers: body.length > 20_000,
    define: { SLUICE_VERSION: JSON.stringify(version) },
    legalComments: 'inline',
    lineLimit: 160,
    ...(!isModule && { format: 'cjs' }),
  })
  return head + code + tail
}

/** Moves all code of a package into one module. Of names that several entries export, each has its own. */
async function joinModules(dist: string, names: Iterable<string>): Promise<void> {
  const shared = new Map<string, string>()
  const entries = new Map<string, string>()
  for (const name of names) {
    const text = await readFile(join(dist, `${name}.js`), 'utf8')
    const lists = [...text.matchAll(/^export \{ (.+) \}/gm)].map(([, list]) => list)
    const exported = (lists.join().match(/[\w$]+(?=,|$)/g) ?? []).map((one) => {
      const unique = shared.has(one) ? `${one}$${shared.size}` : one
      shared.set(unique, `export { ${one} as ${unique} } from './${name}.js'`)
      return `${unique} as ${one}`
    })
    const from = `${'../'.repeat(name.split('/').length - 1) || './'}shared.js`
    entries.set(`${name}.js`, `export { ${exported.join(', ')} } from '${from}'\n`)
  }
  const stdin = { contents: [...shared.values()].join('\n'), resolveDir: dist }
  const { outputFiles } = await bundle({
    ...{ stdin, bundle: true, write: false, packages: 'external', format: 'esm' },
    ...{ minifyWhitespace: true, lineLimit: 160 },
  })
  for (const file of await readdir(dist, { recursive: true })) {
    if (file.endsWith('.js')) await rm(join(dist, file))
  }
  entries.set('shared.js', outputFiles[0]?.text ?? '')
  for (const [file, text] of entries) await writeFile(join(dist, file), text)
}

function byTabs(text: string): string {
  return text.replace(/^(?: {2})+/gm, (spaces) => '\t'.repeat(Math.ceil(spaces.length / 4)))
}

/**
 * Types are declared once, in the form of CommonJS: in a program that uses both forms, the fields that an adapter adds to the requests
 * of its framework must have one type.
 */
async function writeEsmTypes(dist: string, names: Iterable<string>): Promise<void> {
  for (const name of names) {
    const text = await readFile(join(dist, `${name}.d.cts`), 'utf8')
    const from = `from './${basename(name)}.cjs'\n`
    // For ESM the default export of a CommonJS module is all of it.
    const main = /\b(\w+) as default\b/.exec(text)?.[1]
    const asDefault = main === undefined ? '' : `export { ${main} as default } ${from}`
    await writeFile(join(dist, `${name}.d.ts`), `export * ${from}${asDefault}`)
  }
}

function writeJson(path: string, value: unknown): Promise<void> {
  return writeFile(path, `${JSON.stringify(value, null, 2)}\n`)
}
