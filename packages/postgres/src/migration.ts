import { readFileSync } from 'node:fs'
import { knownFields } from '@sluice/core'
import { tableOf } from './options.ts'

/** Options of `postgresMigration`. */
export interface PostgresMigrationOptions {
  /** The table, as in `postgresStore`. @default 'sluice_counts' */
  table?: string | undefined
}

/**
 * Returns the SQL that creates the table and the functions of `postgresStore`, as
 * `@sluice/postgres/migration.sql` has it. It may run again at any time.
 * @example
 * await pool.query(postgresMigration())
 */
export function postgresMigration(options: PostgresMigrationOptions = {}): string {
  knownFields(options, 'postgresMigration', ['table'])
  const table = tableOf(options.table)
  const text = readFileSync(new URL('../migration.sql', import.meta.url), 'utf8')
  return text.replaceAll('sluice_counts', table)
}
