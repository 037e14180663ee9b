import { readFileSync } from 'node:fs'

/** Returns a file from `sql/`. The build replaces this module with the files' contents. */
export function readSql(name: string): string {
  return readFileSync(new URL(`../sql/${name}.sql`, import.meta.url), 'utf8')
}
