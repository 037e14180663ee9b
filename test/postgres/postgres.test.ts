import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, type PolicyFields, type PolicyOptions, regionalStore } from '@sluice/core'
import { openPolicies } from '@sluice/policies'
import { type PostgresStoreOptions, postgresMigration, postgresStore } from '@sluice/postgres'
import { Pool, type PoolClient } from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { BurstProtocol } from '../stores/atomicity-worker.ts'
import { bundledScript } from '../support/bundled-script.ts'
import { startChild } from '../support/child.ts'
import { checkOf, limiterOf, patientLimiter } from '../support/patient-limiter.ts'
import { type PostgresServer, startPostgres } from '../support/postgres-server.ts'
import { until } from '../support/until.ts'

let server: PostgresServer
let pool: Pool
const script = await bundledScript(new URL('oracle-worker.ts', import.meta.url))

beforeAll(async () => {
  server = await startPostgres()
  pool = new Pool({ connectionString: server.url })
  await pool.query(postgresMigration())
})

afterEach(async () => {
  await pool.query('TRUNCATE sluice_counts')
})

afterAll(async () => {
  await pool.end()
  await server.stop()
})

const five: PolicyOptions = { name: 'five', limit: 5, window: '1h' }

function limiterOn(policies: readonly PolicyOptions[] = [five], options?: PostgresStoreOptions) {
  return patientLimiter({ store: postgresStore(pool, options), policies, failureMode: 'closed' })
}

it('8 processes with 500 requests each admit exactly the limit', { timeout: 60_000 }, async () => {
  const args = [server.url, '1234']
  const fleet = Array.from({ length: 8 }, () => startChild<BurstProtocol>(script, { args }))
  await Promise.all(fleet.map((child) => child.ask('connect', undefined)))
  const counts = await Promise.all(fleet.map((child) => child.ask('admitted', undefined)))
  for (const child of fleet) child.stop()
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(1_234)
})

it('decides requests of several policies together, whatever other processes do meanwhile', async () => {
  const tight: PolicyOptions = { name: 'tight', limit: 70, window: '1h' }
  const loose: PolicyOptions = { name: 'loose', limit: 1_000, window: '1d' }
  const limiters = Array.from({ length: 3 }, () => limiterOn([tight, loose], { denialTtlMs: 0 }))
  const decisions = await Promise.all(
    Array.from({ length: 300 }, (_, index) => limiters[index % 3]?.consume('k')),
  )
  expect(decisions.filter((decision) => decision?.allowed)).toHaveLength(70)
  const { outcomes } = (await limiters[0]?.peek('k')) ?? {}
  expect(outcomes?.map(({ remaining }) => remaining)).toEqual([0, 930])
})

it('tries serialization failures again', async () => {
  const options = '-c default_transaction_isolation=serializable'
  const serializable = new Pool({ connectionString: server.url, options })
  const codes: unknown[] = []
  let isDisturbed = false
  const disturbed = {
    async query(query: { text: string }) {
      if (!isDisturbed) return serializable.query(query)
      isDisturbed = false
      const client = await serializable.connect()
      await client.query('BEGIN; SELECT FROM sluice_counts') // fixes what the transaction sees
      await pool.query('UPDATE sluice_counts SET version = version')
      const reply = await client.query(query).catch(({ code }) => codes.push(code))
      client.release(true)
      throw Object.assign(new Error(`not refused: ${reply}`), { code: codes.at(-1) })
    },
    on: serializable.on.bind(serializable),
    off: serializable.off.bind(serializable),
  }
  const store = postgresStore(disturbed, { denialTtlMs: 0 })
  const limiter = patientLimiter({ store, policies: [five], failureMode: 'closed' })
  for (const keys of [['k'], ['k', 'other']]) {
    const consume = () => Promise.all(keys.map((key) => limiter.consume(key)))
    await consume()
    isDisturbed = true
    for (const { source } of await consume()) expect(source).toBe('store')
  }
  expect(codes).toEqual(['40001', '40001'])
  expect(await limiter.peek('k')).toMatchObject({ remaining: 1, source: 'store' })
  await limiter.close()
  await serializable.end()
})

it("follows the server's clock, even after being ahead of it", async () => {
  const policy: PolicyOptions = { name: 'short', limit: 1, window: '300ms' }
  const limiter = limiterOn([policy], { denialTtlMs: 0 })
  expect(await limiter.consume('k')).toMatchObject({ allowed: true, source: 'store' })
  const { allowed, retryAfterMs } = await limiter.consume('k')
  expect(allowed).toBe(false)
  expect(retryAfterMs).toBeLessThanOrEqual(300)
  await sleep(retryAfterMs + 1)
  expect((await limiter.consume('k')).allowed).toBe(true)
})

it('counts by a clock with fractions', async () => {
  let now = Date.now() + 0.25
  const limiter = limiterOn([five], { clock: () => now, denialTtlMs: 0 })
  for (const allowed of [true, true, true, true, true, false, false]) {
    now += 0.5
    expect(await limiter.consume('fraction')).toMatchObject({ allowed })
  }
})

it('lets several processes run the migration at once', async () => {
  await pool.query('DROP TABLE sluice_counts')
  await Promise.all(Array.from({ length: 8 }, () => pool.query(postgresMigration())))
})

it('keeps no identities in the table, and nothing in the session', async () => {
  await limiterOn([five]).consume('ada@example.org')
  const { rows } = await pool.query('SELECT * FROM sluice_counts')
  expect(rows).toMatchObject([{ key: expect.stringMatching(/^[\w-]{22}$/) }])
  expect(JSON.stringify(rows)).not.toContain('ada')
  await limiterOn([five], { secret: 'at least 16 characters' }).consume('ada@example.org')
  expect((await pool.query('SELECT * FROM sluice_counts')).rowCount).toBe(2)
  expect((await pool.query('SELECT * FROM pg_prepared_statements')).rows).toEqual([])
})

it('prepares statements only if it is asked to', async () => {
  const one = new Pool({ connectionString: server.url, max: 1 })
  const store = postgresStore(one, { prepare: true })
  const limiter = patientLimiter({ store, policies: [five], failureMode: 'closed' })
  for (const allowed of [true, true, true, true, true, false]) {
    expect(await limiter.consume('k')).toMatchObject({ allowed, source: 'store' })
  }
  const { rows } = await one.query('SELECT name FROM pg_prepared_statements ORDER BY name')
  expect(rows).toEqual([{ name: 'sluice_counts_decide' }, { name: 'sluice_counts_decide_one' }])
  await limiter.close()
  await one.end()
})

describe('when the server fails', () => {
  it.each([
    ['crash', 5],
    ['shutdown', 2],
  ] as const)('counts on after a %s: %i units are left', { timeout: 30_000 }, async (how, left) => {
    const limiter = limiterOn()
    await limiter.consume('k', { cost: 3 })
    await server.restart(how)
    await until('the store answers', async () => (await limiter.peek('k')).source === 'store')
    expect((await limiter.peek('k')).remaining).toBe(left)
    await limiter.close()
  })

  it('lets no request wait for a frozen server, and charges none of them afterwards', async () => {
    const store = postgresStore(pool)
    const limiter = createLimiter({ store, policies: [five], failureMode: 'open' })
    await until('the store answers', async () => (await limiter.consume('k')).source === 'store')
    await limiter.reset('k')
    server.pause()
    const decisions = await Promise.all(Array.from({ length: 9 }, () => limiter.consume('k')))
    expect(decisions.every(({ allowed, source }) => allowed && source !== 'store')).toBe(true)
    await sleep(1_200)
    server.resume()
    await until('the store answers', async () => (await limiter.peek('k')).source === 'store')
    // The call that waited in the server was too old when the server read it.
    expect((await limiter.peek('k')).remaining).toBe(5)
    await limiter.close()
  })

  it('a locked row delays no other key', async () => {
    const limiter = createLimiter({ store: postgresStore(pool), policies: [five], deadlineMs: 900 })
    const keys = Array.from({ length: 16 }, (_, index) => `k${index}`)
    await until('the store answers', async () => (await limiter.consume('k0')).source === 'store')
    await Promise.all(keys.map((key) => limiter.consume(key)))
    const locker = await lock('SELECT FROM sluice_counts ORDER BY key LIMIT 1 FOR UPDATE')
    const decisions = await Promise.all(keys.map((key) => limiter.consume(key)))
    await locker.query('ROLLBACK')
    locker.release()
    expect(decisions.filter(({ source }) => source !== 'store').length).toBeLessThanOrEqual(1)
    await limiter.close()
  })

  it('reports a missing migration', async () => {
    const store = postgresStore(pool, { table: 'elsewhere' })
    const check = checkOf(createLimiter({ policies: [five] }).policies[0])
    await expect(store.apply('consume', [check])).rejects.toThrow(
      /run the SQL of postgresMigration\(\)/,
    )
    await store.close?.()
  })
})

async function lock(statement: string): Promise<PoolClient> {
  const client = await pool.connect()
  await client.query('BEGIN')
  await client.query(statement)
  return client
}

describe('the sweep', () => {
  it('deletes rows that have ended, in one process at a time', async () => {
    await pool.query(`INSERT INTO sluice_counts
      SELECT 'k' || i, 1, '', CASE WHEN i > 5 THEN 0 ELSE 9999999999999 END FROM generate_series(1, 20) i`)
    const sweeping = await lock("SELECT pg_advisory_xact_lock(hashtext('sluice_counts'))")
    expect(await swept()).toBe(0)
    await sweeping.query('COMMIT')
    sweeping.release()
    expect(await swept()).toBe(10)
    expect(await swept()).toBe(5)
    expect((await pool.query('SELECT FROM sluice_counts')).rowCount).toBe(5)
  })

  async function swept(): Promise<number> {
    return (await pool.query('SELECT sluice_counts_sweep(10) AS n')).rows[0].n
  }
})

describe('options', () => {
  it.each([
    [{ table: 'Robert"; --' }, /table must be 1 to 40 of a-z 0-9 _, .* but is 'Robert/],
    [{ denialTtlMs: -1 }, /denialTtlMs must be .* from 0 to 60000, but is -1/],
    [{ secret: '' }, /secret must be a string/],
    [{ prepare: 'yes' }, /prepare must be true or false, but is 'yes'/],
    [{ clock: 5 }, /clock must be a function .*, but is 5/],
    [{ tabel: 'x' }, /tabel/],
  ])('refuses %j', (options, message) => {
    expect(() => Reflect.apply(postgresStore, undefined, [pool, options])).toThrow(message)
  })

  it('rejects anything but a pool, and policies and tools that need Redis', async () => {
    const store = postgresStore(pool)
    expect(() => Reflect.apply(postgresStore, undefined, ['postgres://'])).toThrow(/a Pool of pg/)
    const make = (own: Partial<PolicyFields>) => () => limiterOf({ store, ...five, ...own })
    expect(make({ limit: 500, prefetch: '1s' })).toThrow(/redisStore\(client\)/)
    expect(make({ limit: 10_001 })).toThrow(/at most 10000 with algorithm 'sliding-log'/)
    const regional = { region: 'eu', local: store, global: store, shares: { eu: 0.5 } }
    expect(() => regionalStore(regional)).toThrow(/redisStore\(client\)/)
    await expect(openPolicies({ file: 'none.yaml', store })).rejects.toThrow(/redisStore\(client\)/)
    await store.close?.()
  })
})
