// One process of a fleet: 500 requests on one key, 50 at a time. Prints how many were admitted.

import { postgresStore } from '@sluice/postgres'
import { Pool } from 'pg'
import { patientLimiter } from '../support/patient-limiter.ts'

const [url = '', limit = '0'] = process.argv.slice(2)
const pool = new Pool({ connectionString: url, max: 2 })
await pool.query('SELECT 1')
const limiter = patientLimiter({
  store: postgresStore(pool, { denialTtlMs: 0 }),
  policies: [{ name: 'p', limit: Number(limit), window: '1h' }],
  failureMode: 'closed',
})

process.stdin.once('data', async () => {
  let admitted = 0
  const client = async () => {
    for (let request = 0; request < 10; request += 1) {
      const { allowed, source } = await limiter.consume('everybody')
      if (source !== 'store') throw new Error(`decided by ${source}`)
      if (allowed) admitted += 1
    }
  }
  await Promise.all(Array.from({ length: 50 }, client))
  console.log(admitted)
  await limiter.close()
  await pool.end()
  process.stdin.destroy()
})
console.log('ready')
