import { mkdir, writeFile } from 'node:fs/promises'
import { build } from 'esbuild'
import { readText, root } from '../../support/workspace.ts'

const source = 'packages/admin/src/page'
/** The folder of what is served, which is checked in: an example needs no build. */
const target = 'packages/admin/page'

export type PageFiles = Readonly<Record<'index.html' | 'page.css' | 'page.js', string>>

/** Bundles the page of @sluice/admin: one script, one sheet of styles, and the document. */
export async function bundlePage(): Promise<PageFiles> {
  const { outputFiles } = await build({
    entryPoints: { page: `${source}/main.tsx` },
    outdir: target,
    absWorkingDir: root,
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    target: ['chrome123', 'firefox121', 'safari17.5'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    charset: 'utf8',
  })
  const textOf = (end: string) => outputFiles.find(({ path }) => path.endsWith(end))?.text ?? ''
  return {
    'index.html': readText(`${source}/index.html`),
    'page.css': textOf('.css'),
    'page.js': textOf('.js'),
  }
}

/** Reads what is checked in. */
export function readPage(): PageFiles {
  const read = (name: string) => readText(`${target}/${name}`)
  return {
    'index.html': read('index.html'),
    'page.css': read('page.css'),
    'page.js': read('page.js'),
  }
}

export async function writePage(files: PageFiles): Promise<void> {
  await mkdir(`${root}${target}`, { recursive: true })
  for (const [name, text] of Object.entries(files)) await writeFile(`${root}${target}/${name}`, text)
}
