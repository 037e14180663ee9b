import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { beforeAll, describe, expect, it } from 'vitest'
import { readText, root } from '../../support/workspace.ts'

/** What reports are made of. It is checked in, so that sources run without a build. */
const made = `${root}packages/cli/page`
const maxBytes = 40 * 1_024

describe('the page of a report', () => {
  let files: readonly (readonly [name: string, text: string])[]

  beforeAll(async () => {
    files = await bundleReport()
  })

  it('is checked in as its sources make it: write it anew with `cli/report/bundle -u`', async () => {
    for (const [name, text] of files) await expect(text).toMatchFileSnapshot(`${made}/${name}`)
  })

  it('has at most 40 KB, compressed', () => {
    const bytes = files.reduce((sum, [, text]) => sum + gzipSync(text, { level: 9 }).length, 0)
    expect(bytes).toBeLessThanOrEqual(maxBytes)
  })

  it('can stand in a script and a style of a document, and evaluates no text', () => {
    const [[, script = ''] = [], [, styles = ''] = []] = files
    const found = (text: string, what: RegExp) => text.match(what) ?? []
    expect(found(script, /<\/script|<!--|\beval\(|new Function\(|insertAdjacentHTML/gi)).toEqual([])
    expect(found(styles, /<\/style|@import|url\((?!["']?data:)/gi)).toEqual([])
  })

  it('carries the licence of what is bundled, and names no other origin', () => {
    const [[, script = ''] = []] = files
    expect(script).toMatch(/preact: The MIT License/)
    const addresses = files.flatMap(
      ([, text]) => text.match(/(?:https?:)?\/\/[a-z][\w.-]+\.\w+/g) ?? [],
    )
    expect(addresses.filter((address) => !address.includes('www.w3.org'))).toEqual([])
  })
})

/** One script and one sheet of styles. */
async function bundleReport(): Promise<readonly (readonly [name: string, text: string])[]> {
  const licence = readText('node_modules/preact/LICENSE').trim()
  const { outputFiles } = await build({
    entryPoints: ['main.tsx', 'report.css'].map((file) => ({
      in: `packages/cli/src/page/${file}`,
      out: 'report',
    })),
    outdir: made,
    absWorkingDir: root,
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    target: ['chrome123', 'firefox121', 'safari17.5'],
    legalComments: 'none',
    banner: { js: `/*!\npreact: ${licence}\n*/` },
    charset: 'utf8',
  })
  const textOf = (end: string) => outputFiles.find(({ path }) => path.endsWith(end))?.text ?? ''
  return [
    ['report.js', textOf('.js')],
    ['report.css', textOf('.css')],
  ]
}
