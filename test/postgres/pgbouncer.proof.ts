import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { postgresMigration, postgresStore } from '@sluice/postgres'
import { storeConformance } from '@sluice/testing'
import { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { leash } from '../support/leash.ts'
import { patientLimiter } from '../support/patient-limiter.ts'
import { ownUser, type PostgresServer, startPostgres } from '../support/postgres-server.ts'
import { findOrNote } from '../support/programs.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'

const program = findOrNote('pgbouncer', 'postgresStore behind PgBouncer')

describe.runIf(program !== undefined)('behind PgBouncer, which pools transactions', () => {
  let server: PostgresServer
  let stop: () => Promise<void>
  let url: string
  let pool: Pool
  const pools: Pool[] = []
  const poolOf = () => {
    const opened = new Pool({ connectionString: url, max: 4 })
    pools.push(opened)
    return opened
  }

  beforeAll(async () => {
    server = await startPostgres()
    const port = await freePort()
    const { port: serverPort } = new URL(server.url)
    const home = temporaryFolder('pgbouncer')
    chmodSync(home.path, 0o755)
    const settings = join(home.path, 'pgbouncer.ini')
    writeFileSync(
      settings,
      `[databases]\npostgres = host=127.0.0.1 port=${serverPort} user=postgres
[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = ${port}\nauth_type = any\nunix_socket_dir =
pool_mode = transaction\ndefault_pool_size = 3\n`,
    )
    const child = spawn(program ?? '', [settings], { ...ownUser(), stdio: 'ignore' })
    const release = leash(child, home.path)
    url = `postgres://postgres@127.0.0.1:${port}/postgres`
    pool = poolOf()
    await until('PgBouncer answers', () =>
      pool.query(postgresMigration()).then(
        () => true,
        () => false,
      ),
    )
    stop = async () => {
      child.kill('SIGINT')
      await once(child, 'exit')
      release()
      home[Symbol.dispose]()
    }
  })

  afterAll(async () => {
    await Promise.all(pools.map((opened) => opened.end()))
    await stop()
    await server.stop()
  })

  storeConformance({
    ...{ describe, it },
    async open(clock) {
      await pool.query('DELETE FROM sluice_counts')
      return { store: postgresStore(pool, { clock, denialTtlMs: 0 }) }
    },
  })

  it('shares its connections between transactions, and admits exactly the limit', async () => {
    await pool.query('DELETE FROM sluice_counts')
    const limiters = Array.from({ length: 8 }, () =>
      patientLimiter({
        store: postgresStore(poolOf(), { denialTtlMs: 0 }),
        policies: [{ name: 'p', limit: 234, window: '1h' }],
        failureMode: 'closed',
      }),
    )
    const decisions = await Promise.all(
      limiters.flatMap((limiter) =>
        Array.from({ length: 100 }, () => limiter.consume('everybody')),
      ),
    )
    expect(new Set(decisions.map(({ source }) => source))).toEqual(new Set(['store']))
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(234)
    const { rows } = await pool.query(
      "SELECT count(*)::int AS n FROM pg_stat_activity WHERE backend_type = 'client backend'",
    )
    expect(rows[0]?.n).toBeLessThanOrEqual(3)
  })
})
