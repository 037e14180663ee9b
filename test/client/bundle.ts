import { build } from 'esbuild'
import { root } from '../support/workspace.ts'

/** `@sluice/client`, or some of its names, as a bundler makes it for a page: one minified script that sets `sluice`. */
export async function bundleForPages(names = '*'): Promise<Uint8Array> {
  const { outputFiles } = await build({
    stdin: { contents: `export ${names} from '@sluice/client'`, resolveDir: `${root}test` },
    ...({ bundle: true, minify: true, write: false, format: 'iife' } as const),
    ...({ globalName: 'sluice', platform: 'browser', target: 'es2022' } as const),
    conditions: ['@sluice/source'],
    absWorkingDir: root,
  })
  const [script] = outputFiles
  if (script === undefined) throw new Error('esbuild wrote nothing')
  return script.contents
}
