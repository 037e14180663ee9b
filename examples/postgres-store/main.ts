import { createLimiter } from '@sluice/core'
import { Pool } from 'pg'
import { createStatesTable, postgresStore } from './postgres-store.ts'

// A limiter that counts in Postgres: DATABASE_URL=postgres://… npm start -w examples/postgres-store
const pool = new Pool({ connectionString: process.env.DATABASE_URL })
await createStatesTable(pool)
const limiter = createLimiter({
  store: postgresStore(pool),
  policies: [
    { name: 'burst', limit: 5, window: '10s' },
    { name: 'day', limit: 1_000, window: '1d' },
  ],
})
for (let request = 1; request <= 6; request += 1) {
  const { allowed, retryAfterMs } = await limiter.consume('user:42')
  console.log(`request ${request}: ${allowed ? 'allowed' : `denied for ${retryAfterMs} ms`}`)
}
await limiter.close()
await pool.end()
