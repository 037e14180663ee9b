// One process of a fleet, which asks 500 times for one key, 50 times at once.

import { postgresStore } from '@sluice/postgres'
import { Pool } from 'pg'
import type { BurstProtocol } from '../stores/atomicity-worker.ts'
import { answerParent } from '../support/child.ts'
import { patientLimiter } from '../support/patient-limiter.ts'

const [url = '', limit = '0'] = process.argv.slice(2)
const pool = new Pool({ connectionString: url, max: 2 })
const limiter = patientLimiter({
  store: postgresStore(pool, { denialTtlMs: 0 }),
  policies: [{ name: 'p', limit: Number(limit), window: '1h' }],
  failureMode: 'closed',
})

answerParent<BurstProtocol>({
  connect: async () => (await pool.query('SELECT 1')).rowCount,
  async admitted() {
    let admitted = 0
    const client = async () => {
      for (let request = 0; request < 10; request += 1) {
        const { allowed, source } = await limiter.consume('everybody')
        if (source !== 'store') throw new Error(`decided by ${source}`)
        if (allowed) admitted += 1
      }
    }
    await Promise.all(Array.from({ length: 50 }, client))
    return admitted
  },
})
