import { gzipSync } from 'node:zlib'
import { type BuildOptions, build } from 'esbuild'
import { beforeAll, describe, expect, it } from 'vitest'
import { readText, root } from '../../support/workspace.ts'

/** The files of a page, of which a package has copies, so that its sources run without a build. */
interface Bundled {
  /** Where the copies are. */
  readonly folder: string
  /** Files that are not bundled. */
  readonly asTheyAre?: readonly string[]
  /** The names of the script and the styles. */
  readonly names: readonly [script: string, styles: string]
  readonly maxKilobytes: number
  readonly options: BuildOptions
}

type Texts = Readonly<Record<string, string>>

/** Describes the promises of every page that a package ships. */
export function bundleSuite(page: string, { folder, maxKilobytes, ...how }: Bundled): void {
  describe(page, () => {
    let texts: Texts
    beforeAll(async () => {
      texts = await bundled(folder, how)
    })

    it('is checked in as its sources make it: write it anew with `-u`', async () => {
      for (const [name, text] of Object.entries(texts)) {
        await expect(text).toMatchFileSnapshot(`${root}${folder}/${name}`)
      }
    })

    it(`has at most ${maxKilobytes} KB, compressed`, () => {
      const sizes = Object.values(texts).map((text) => gzipSync(text, { level: 9 }).length)
      expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(maxKilobytes * 1_024)
    })

    it('can stand in a document, has no code or style in it, and evaluates no text', () => {
      const [script = '', styles = ''] = how.names.map((name) => texts[name])
      const evaluated = /<\/script|<!--|\beval\(|new Function\(|insertAdjacentHTML/gi
      expect(script.match(evaluated)).toBeNull()
      expect(styles.match(/<\/style|@import|url\((?!["']?data:)/gi)).toBeNull()
      const inline = /<style|style=|\son\w+=|<script(?![^>]*src=)/g
      expect(texts['index.html']?.match(inline) ?? null).toBeNull()
    })

    it('carries the licence of what is bundled, and names no other origin', () => {
      expect(texts[how.names[0]]).toMatch(/^preact: The MIT License/m)
      const all = Object.values(texts).join('\n')
      const addresses = all.match(/(?:https?:)?\/\/[a-z][\w.-]+\.\w+/g) ?? []
      expect(addresses.filter((address) => !address.includes('www.w3.org'))).toEqual([])
    })
  })
}

async function bundled(
  folder: string,
  { asTheyAre = [], names: [script, styles], options }: Omit<Bundled, 'folder' | 'maxKilobytes'>,
): Promise<Texts> {
  // The licence of what is bundled has to travel with it.
  const licence = `/*!\npreact: ${readText('node_modules/preact/LICENSE').trim()}\n*/`
  const { outputFiles = [] } = await build({
    ...{ outdir: root + folder, absWorkingDir: root, bundle: true, minify: true, write: false },
    ...{ jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none', charset: 'utf8' },
    ...{ target: ['chrome123', 'firefox121', 'safari17.5'], banner: { js: licence } },
    ...options,
  })
  const textOf = (end: string) => outputFiles.find(({ path }) => path.endsWith(end))?.text ?? ''
  return {
    ...Object.fromEntries(asTheyAre.map((name) => [name, readText(`${folder}/${name}`)])),
    [script]: textOf('.js'),
    [styles]: textOf('.css'),
  }
}
