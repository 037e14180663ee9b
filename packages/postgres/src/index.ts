export { type PostgresMigrationOptions, postgresMigration } from './migration.ts'
export type { PostgresPool, PostgresStoreOptions } from './options.ts'
export { postgresStore } from './postgres-store.ts'
