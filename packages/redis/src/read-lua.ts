import { readFileSync } from 'node:fs'

/**
 * The text of a file of `lua/`. The build writes the texts in the place of this module: bundles
 * have no files beside them.
 */
export function readLua(name: string): string {
  return readFileSync(new URL(`../lua/${name}.lua`, import.meta.url), 'utf8')
}
