import { readFileSync } from 'node:fs'

/** Returns a text of `sql/`. The build puts the texts in the place of this module. */
export function readSql(name: string): string {
  return readFileSync(new URL(`../sql/${name}.sql`, import.meta.url), 'utf8')
}
