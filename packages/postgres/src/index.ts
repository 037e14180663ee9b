export {
  type PostgresMigrationOptions,
  type PostgresPool,
  type PostgresStoreOptions,
  postgresMigration,
} from './options.ts'
export { postgresStore } from './postgres-store.ts'
