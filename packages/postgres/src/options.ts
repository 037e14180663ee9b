import {
  checkSecret,
  countOption,
  flagOption,
  invalid,
  knownFields,
  noteRelease,
  type Option,
  type OptionsOf,
  readOptions,
  type SettingsOf,
} from '@sluice/core'
import { readSql } from './read-sql.ts'

/** A query of `pg`. */
export interface PostgresQuery {
  text: string
  /** Time (ms) after which the connection is given up. */
  query_timeout: number
  /** Name of a prepared statement. */
  name?: string
  values?: (string | number | null)[]
}

/** The part of `pg`'s `Pool` that Sluice uses. */
export interface PostgresPool {
  query(query: PostgresQuery): Promise<{ rows: readonly unknown[] }>
  on(event: 'error', listener: (error: Error) => void): unknown
  off(event: 'error', listener: (error: Error) => void): unknown
}

/** The options of `postgresStore`. */
class PostgresTable {
  /**
   * Table created by the migration: a lower-case identifier of at most 40 characters. `search_path`
   * determines its schema.
   * @default 'sluice_counts'
   */
  table?: Option<string, string> = tableOf
  /**
   * Turns key digests into HMACs, so that nobody who reads the table can guess the keys.
   * @default none
   */
  secret?: Option<string> = (secret) => {
    checkSecret(secret, 'postgresStore')
    return secret
  }
  /**
   * Prepares statements on each connection, which saves Postgres a third of the CPU time of a small
   * call. Leave it unset with PgBouncer below 1.21.
   * @default false
   */
  prepare?: Option<boolean, boolean> = flagOption(false)
  /**
   * Time (ms) for which a denial is cached in this process. Resets, refunds and raised limits of
   * other processes take effect within that time. 0 calls Postgres every time; 60,000 at most.
   * @default 1_000
   */
  denialTtlMs?: Option<number, number> = countOption(1_000, { min: 0, max: 60_000 })
  /**
   * Returns milliseconds since the epoch, for simulations and tests.
   * @default the server's clock
   */
  clock?: Option<() => number> = (clock, option) => {
    if (clock === undefined) return undefined
    if (typeof clock === 'function') return () => Math.floor(clock())
    throw invalid({ option }, clock, 'a function that returns milliseconds')
  }
}

/** Options of `postgresStore`. */
export interface PostgresStoreOptions extends OptionsOf<PostgresTable> {}

/** The checked options, with defaults. */
export type PostgresStoreSetup = SettingsOf<PostgresTable>

export function setUpPostgresStore(
  pool: PostgresPool,
  options: PostgresStoreOptions,
): PostgresStoreSetup {
  noteRelease('@sluice/postgres')
  if (typeof pool?.query !== 'function' || typeof pool.on !== 'function') {
    throw invalid({ option: 'pool' }, pool, 'a Pool of pg: new Pool({ connectionString })')
  }
  return readOptions(new PostgresTable(), options, 'postgresStore')
}

/** Returns the table name, which is inserted into SQL unescaped. */
function tableOf(table: unknown = 'sluice_counts'): string {
  if (typeof table === 'string' && /^[a-z_][a-z0-9_]{0,39}$/.test(table)) return table
  throw invalid({ option: 'table' }, table, `1 to 40 of a-z 0-9 _, such as 'sluice_counts'`)
}

/** Options of `postgresMigration`. */
export interface PostgresMigrationOptions {
  /** The table, as in `postgresStore`. @default 'sluice_counts' */
  table?: string | undefined
}

/**
 * Returns the SQL that creates the table and the functions of `postgresStore`. It is safe to run
 * again. The package also contains it as `sql/migration.sql`.
 * @example
 * await pool.query(postgresMigration())
 */
export function postgresMigration(options: PostgresMigrationOptions = {}): string {
  knownFields(options, 'postgresMigration', ['table'])
  const table = tableOf(options.table)
  return readSql('migration').replaceAll('sluice_counts', table)
}
