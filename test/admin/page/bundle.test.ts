import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { beforeAll, describe, expect, it } from 'vitest'
import { readText, root } from '../../support/workspace.ts'

const source = 'packages/admin/src/page'
/** The files that are served. They are checked in, so that examples run without a build. */
const served = 'packages/admin/page'
const maxBytes = 36 * 1_024

describe('the page of @sluice/admin', () => {
  let files: readonly (readonly [name: string, text: string])[]

  beforeAll(async () => {
    files = await bundlePage()
  })

  it('is checked in as its sources make it: write it anew with `admin/page -u`', async () => {
    for (const [name, text] of files)
      await expect(text).toMatchFileSnapshot(`${root}${served}/${name}`)
  })

  it('has at most 36 KB, compressed', () => {
    const bytes = files.reduce((sum, [, text]) => sum + gzipSync(text, { level: 9 }).length, 0)
    expect(bytes).toBeLessThanOrEqual(maxBytes)
  })

  it('has no code or style in its document, and evaluates no text', () => {
    const [html = '', css = '', script = ''] = files.map(([, text]) => text)
    const found = (text: string, what: RegExp) => text.match(what) ?? []
    expect(found(html, /<style|style=|\son\w+=|<script(?![^>]*src=)/g)).toEqual([])
    expect(found(script, /\beval\(|new Function\(|insertAdjacentHTML/g)).toEqual([])
    expect(found(css, /@import/g)).toEqual([])
  })

  it('carries the licence of what is bundled', () => {
    const [, , [, script = ''] = []] = files
    expect(script).toMatch(/^preact: The MIT License/m)
  })

  it('names no other origin', () => {
    const addresses = files.flatMap(
      ([, text]) => text.match(/(?:https?:)?\/\/[a-z][\w.-]+\.\w+/g) ?? [],
    )
    expect(addresses.filter((address) => !address.includes('www.w3.org'))).toEqual([])
  })
})

/** The licence of what is bundled, which has to travel with it. */
function licence(): string {
  return `/*!\npreact: ${readText('node_modules/preact/LICENSE').trim()}\n*/`
}

/** One document, one sheet of styles and one script. */
async function bundlePage(): Promise<readonly (readonly [name: string, text: string])[]> {
  const { outputFiles } = await build({
    entryPoints: { page: `${source}/main.tsx` },
    outdir: root + served,
    absWorkingDir: root,
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    target: ['chrome123', 'firefox121', 'safari17.5'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    banner: { js: licence() },
    charset: 'utf8',
  })
  const textOf = (end: string) => outputFiles.find(({ path }) => path.endsWith(end))?.text ?? ''
  return [
    ['index.html', readText(`${served}/index.html`)],
    ['page.css', textOf('.css')],
    ['page.js', textOf('.js')],
  ]
}
