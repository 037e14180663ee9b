import { readFileSync } from 'node:fs'

/** Reads a file of the report's page. The build puts the texts in place of this file. */
export function readPage(name: string): string {
  return readFileSync(new URL(`../page/${name}`, import.meta.url), 'utf8')
}
