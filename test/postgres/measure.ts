// Measures postgresStore beside the Postgres limiter of rate-limiter-flexible: `npm run measure:postgres`. Both count in an UNLOGGED table
// of one server with synchronous_commit off, in rounds that take turns. `pg alone` is the smallest program that counts in one round trip:
// it shows what is left to gain with one request in flight.

import type { CheckLimiter } from '@sluice/core'
import { postgresMigration, postgresStore } from '@sluice/postgres'
import { Pool } from 'pg'
import { RateLimiterPostgres } from 'rate-limiter-flexible'
import { closedLoop } from '../bench/harness/closed-loop.ts'
import { quantile } from '../bench/harness/figures.ts'
import { patientLimiter } from '../support/patient-limiter.ts'
import { startPostgres } from '../support/postgres-server.ts'

const { ROUNDS = '9', MS = '400', DATABASE_URL } = process.env
const limit = 1_000_000_000
const keys = Array.from({ length: 10_000 }, (_, index) => `user:${index}`)
const server = DATABASE_URL === undefined ? await startPostgres() : undefined
const url = DATABASE_URL ?? server?.url
const pool = new Pool({ connectionString: url, options: '-c synchronous_commit=off' })
await pool.query('DROP TABLE IF EXISTS sluice_counts, rlf')
await pool.query(postgresMigration())
await pool.query(
  'CREATE UNLOGGED TABLE rlf (key varchar(255) PRIMARY KEY, points integer NOT NULL DEFAULT 0, expire bigint)',
)

type Ask = (key: string) => Promise<unknown>
const theirs = new RateLimiterPostgres({
  ...{ storeClient: pool, storeType: 'pool', tableName: 'rlf', tableCreated: true },
  ...{ keyPrefix: '', points: limit, duration: 3_600, clearExpiredByTimeout: false },
})
const rlf: Ask = (key) => theirs.consume(key)
const statement = {
  name: 'alone',
  text: 'UPDATE rlf SET points = points + 1 WHERE key = $1 RETURNING points',
  query_timeout: 1_000,
}
const alone: Ask = (key) => pool.query({ ...statement, values: [key] })
const ours = [false, true].map((prepare) =>
  patientLimiter({
    store: postgresStore(pool, { prepare }),
    policies: [{ name: `prepare ${prepare}`, algorithm: 'fixed-window', limit, window: '1h' }],
    failureMode: 'closed',
  }),
)
const askOf =
  ({ consume }: CheckLimiter): Ask =>
  (key) =>
    consume(key)
const subjects = [rlf, ...ours.map(askOf), alone]
for (const ask of subjects) {
  for (let at = 0; at < keys.length; at += 100) await Promise.all(keys.slice(at, at + 100).map(ask))
}
await pool.query('ANALYZE')

const anyKey = () => keys[Math.floor(Math.random() * keys.length)] ?? ''
console.log(
  '| load | rate-limiter-flexible | Sluice | prepared | pg alone |\n| --- | --- | --- | --- | --- |',
)
await measure('1 in flight, 10,000 keys', 1, anyKey)
await measure('64 in flight, 10,000 keys', 64, anyKey)
await measure('64 in flight, one key', 64, () => 'user:1')
for (const limiter of ours) await limiter.close()
await pool.end()
await server?.stop()

async function measure(load: string, inFlight: number, keyOf: () => string): Promise<void> {
  const rates: number[][] = subjects.map(() => [])
  for (let round = 0; round < Number(ROUNDS); round += 1) {
    for (const [index, ask] of subjects.entries()) {
      const check = () => ask(keyOf()).then(() => true)
      const loop = await closedLoop({ inFlight, durationMs: Number(MS), check })
      rates[index]?.push((loop.checks * 1_000) / loop.elapsedMs)
    }
  }
  const [base = []] = rates
  const cells = rates.map((each) => {
    const ratios = each.map((rate, round) => rate / (base[round] ?? rate))
    return `${Math.round(quantile(each, 0.5))}/s, ${quantile(ratios, 0.5).toFixed(2)} ×`
  })
  console.log(`| ${[load, ...cells].join(' | ')} |`)
}
