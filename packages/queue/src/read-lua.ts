import { readFileSync } from 'node:fs'

/**
 * Reads a file of `lua/`. The build replaces this module with their contents, since bundles have no
 * files next to them.
 */
export function readLua(name: string): string {
  return readFileSync(new URL(`../lua/${name}.lua`, import.meta.url), 'utf8')
}
