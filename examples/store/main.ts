// A limiter that counts in a store of its own: the sixth request within ten seconds is denied.
// With DATABASE_URL=postgres://… it counts in Postgres.
import { createLimiter } from '@sluice/core'
import { Pool } from 'pg'
import { mapStore } from './map-store.ts'
import { createStatesTable, postgresStore } from './postgres-store.ts'

const { DATABASE_URL } = process.env
const pool = DATABASE_URL ? new Pool({ connectionString: DATABASE_URL }) : undefined
if (pool) await createStatesTable(pool)
const limiter = createLimiter({
  store: pool ? postgresStore(pool) : mapStore(),
  limit: 5,
  window: '10s',
})
for (let request = 1; request <= 6; request += 1) {
  const { allowed, retryAfterMs } = await limiter.consume('ada')
  console.log(`request ${request}: ${allowed ? 'allowed' : `denied for ${retryAfterMs} ms`}`)
}
await limiter.close()
await pool?.end()
