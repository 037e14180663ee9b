import { build } from 'esbuild'
import { root } from '../support/workspace.ts'

/** `@sluice/client` as a bundler makes it for a page: one minified script that sets `sluice`. */
export async function bundleForPages(): Promise<Uint8Array> {
  const { outputFiles } = await build({
    entryPoints: [`${root}packages/client/src/index.ts`],
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    globalName: 'sluice',
    platform: 'browser',
    target: 'es2022',
    conditions: ['@sluice/source'],
    absWorkingDir: root,
  })
  const [script] = outputFiles
  if (script === undefined) throw new Error('esbuild wrote nothing')
  return script.contents
}
