import { rateLimit } from '@sluice/express'
import express from 'express'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { serve } from '../admin/serve.ts'
import { type Disturbance, startTcpProxy } from '../faults/tcp-proxy.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { tlsFront } from '../support/tls-front.ts'
import { until } from '../support/until.ts'
import { runSluice } from './run-sluice.ts'

interface Finding {
  readonly check: string
  readonly severity: 'error' | 'warning' | 'note' | 'ok'
  readonly seen: string
  readonly fix?: string
}

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis({ args: ['--maxmemory', '200mb'] })
})
afterAll(() => redis.stop())

/** Runs the doctor. @returns the findings by their subject, and what was printed */
async function examine(url: string, ...args: readonly string[]) {
  const ran = await runSluice(['doctor', '--json', ...args], { env: { REDIS_URL: url } })
  const { findings }: { findings: readonly Finding[] } = JSON.parse(ran.stdout)
  for (const { check, severity, fix } of findings) {
    const needsFix = severity === 'error' || severity === 'warning'
    expect(needsFix && fix === undefined, `${check} has no fix`).toBe(false)
  }
  const of = (check: string) => findings.find((finding) => finding.check === check)
  return { ...ran, of, findings }
}

/** A finding whose texts contain these. */
const finding = (severity: Finding['severity'], seen: string, fix?: string) => ({
  ...{ severity, seen: expect.stringContaining(seen) },
  ...(fix !== undefined && { fix: expect.stringContaining(fix) }),
})

async function startOwn(...args: readonly string[]): Promise<RedisServer> {
  const server = await startRedis({ args: ['--maxmemory', '200mb', ...args] })
  onTestFinished(() => server.stop())
  return server
}

/** A way to the Redis of the file that does this to its replies. @returns its address */
async function front(disturbance: Disturbance): Promise<string> {
  const proxy = await startTcpProxy(redis.port)
  onTestFinished(proxy.close)
  proxy.disturb(disturbance)
  return `redis://127.0.0.1:${proxy.port}`
}

describe('sluice doctor', () => {
  it('finds no problem in a healthy Redis, and leaves no keys', async () => {
    await redis.cli('FLUSHALL')
    const { exitCode, findings, of } = await examine(redis.url)
    expect(findings.filter(({ severity }) => !['ok', 'note'].includes(severity))).toEqual([])
    expect(exitCode).toBe(0)
    for (const check of ['connection', 'version', 'clock', 'rights', 'decision', 'latency']) {
      expect(of(check)?.severity, check).toBe('ok')
    }
    expect(of('proxy')?.seen).toContain('not checked')
    const keys = await redis.cli('KEYS', '*')
    for (const key of Array.isArray(keys) ? keys : []) {
      expect(await redis.cli('PTTL', String(key))).toBeGreaterThan(0)
    }
  })

  it('prints a line for each finding, with its fix', async () => {
    const own = await startOwn('--maxmemory', '0')
    const { exitCode, stdout } = await runSluice(['doctor'], { env: { REDIS_URL: own.url } })
    expect(exitCode).toBe(0)
    expect(stdout).toContain('✓ eviction')
    expect(stdout).toMatch(/! memory +.*maxmemory is not set.*\n +fix: set maxmemory/)
    expect(stdout).toContain('0 errors, 1 warning\n')
    const strict = await runSluice(['doctor', '--strict'], { env: { REDIS_URL: own.url } })
    expect(strict.exitCode).toBe(1)
  })

  it('says how to set a missing address, and never prints an invalid one', async () => {
    const none = await runSluice(['doctor'])
    expect([none.exitCode, none.stderr]).toEqual([2, expect.stringContaining('Set REDIS_URL')])
    const wrong = await runSluice(['doctor'], { env: { REDIS_URL: 'http://:hunter2@host' } })
    expect(wrong.exitCode).toBe(2)
    expect(wrong.stderr).toContain('REDIS_URL must be redis://')
    expect(wrong.stderr).not.toContain('hunter2')
  })

  it.each([
    ['--prefix', 'a{b}', '--prefix must be'],
    ['--timeout', '5', '--timeout must be'],
    ['--api', 'ftp://host', '--api must be http://'],
    ['--api', 'http://user:hunter2@host/', '--api must be an address without user and password'],
    ['--api', 'http://user:hunter2@', '--api must be http://'],
  ])('refuses %s %s', async (option, value, message) => {
    const env = { REDIS_URL: redis.url }
    const { exitCode, stderr } = await runSluice(['doctor', option, value], { env })
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(message)])
    expect(stderr).not.toContain('hunter2')
  })
})

describe('the connection', () => {
  it('is refused', async () => {
    const { exitCode, of, findings } = await examine('redis://127.0.0.1:1')
    expect(exitCode).toBe(1)
    expect(of('connection')).toMatchObject(
      finding('error', 'ECONNREFUSED', 'check that Redis is running'),
    )
    expect(findings).toHaveLength(2)
  })

  it.each([
    ['without a password', ''],
    ['with a wrong password', ':hunter2@'],
    ['as a user that there is not', 'nobody:hunter2@'],
  ])('is not allowed %s, and the password is not printed', async (_, who) => {
    const own = await startOwn('--requirepass', 'right')
    const { of, stdout, stderr } = await examine(`redis://${who}127.0.0.1:${own.port}`)
    expect(of('connection')).toMatchObject(finding('error', '', 'user and password'))
    expect(stdout + stderr).not.toContain('hunter2')
    const right = await examine(`redis://:right@127.0.0.1:${own.port}`)
    expect(right.of('decision')?.severity).toBe('ok')
  })

  it('has TLS that Node does not trust, or has none', async () => {
    await using tls = await tlsFront(redis.port)
    const untrusted = await examine(`rediss://localhost:${tls.port}`)
    expect(untrusted.of('connection')?.fix).toContain('NODE_EXTRA_CA_CERTS')
    const plain = await examine(`rediss://127.0.0.1:${redis.port}`, '--timeout', '1s')
    expect(plain.of('connection')?.fix).toContain('use redis:// instead of rediss://')
    const secret = await examine(`redis://localhost:${tls.port}`)
    expect(secret.of('connection')?.fix).toContain('rediss:// for TLS')
  })

  it('times out: doctor ends if the server is stopped', async () => {
    const own = await startOwn()
    own.pause()
    const { exitCode, of } = await examine(own.url, '--timeout', '1s')
    expect(exitCode).toBe(1)
    expect(of('connection')).toMatchObject(finding('error', 'no answer'))
  })

  it('falls silent in the middle', async () => {
    let isSilent = false
    const url = await front({
      changed(reply) {
        isSilent ||= reply.includes('redis_version')
        return isSilent ? '' : reply
      },
    })
    const { of, findings } = await examine(url, '--timeout', '1s')
    expect(of('server')).toMatchObject(finding('error', 'stopped answering'))
    expect(findings.map(({ check }) => check)).toEqual(['connection', 'server', 'proxy'])
  })
})

/** Gives a user of Redis these rights beside all others. @returns the address with the user */
async function userWith(...rules: readonly string[]): Promise<string> {
  const all = ['reset', 'on', '>pw', '~*', '+@all']
  await redis.cli('ACL', 'SETUSER', 'app', ...all, ...rules)
  return `redis://app:pw@127.0.0.1:${redis.port}`
}

describe('the rights', () => {
  it.each([
    ['-evalsha', 'scripts', 'ACL SETUSER'],
    ['-eval', 'scripts', 'ACL SETUSER'],
    ['-time', 'TIME in scripts', "clock: 'client'"],
    ['-time', 'clock', 'ACL SETUSER … +time'],
    ['-append -lpop', 'rights', '~sluice:* +append +lpop'],
    ['-zcard', 'rights', '+zcard'],
    ['-scan', 'keys', '+scan'],
    ['-info', 'server', '+info'],
    ['resetkeys ~other:*', 'rights', 'ACL SETUSER'],
    ['-eval', 'scripts', 'ACL SETUSER <user> ~acme:* +@all', '--prefix', 'acme'],
  ])('lack %s: %s', async (rule, check, fix, ...args) => {
    const { of, exitCode } = await examine(await userWith(...rule.split(' ')), ...args)
    expect(of(check)?.severity).not.toBe('ok')
    expect(of(check)?.fix).toContain(fix)
    if (of(check)?.severity === 'error') expect(exitCode).toBe(1)
  })

  it('suffice as documented', async () => {
    const { of } = await examine(await userWith('resetkeys', '~sluice:*'))
    for (const check of ['scripts', 'TIME in scripts', 'rights', 'decision', 'keys']) {
      expect(of(check)?.severity, check).toBe('ok')
    }
  })
})

describe('the server', () => {
  const started = async (...args: readonly string[]) => (await startOwn(...args)).url
  const replica = () => started('--replicaof', `127.0.0.1 ${redis.port}`)
  const evicting = () => started('--maxmemory-policy', 'allkeys-lru')
  const far = () => front({ replyDelayMs: 20 })
  const replaced = (what: RegExp, by: (...found: string[]) => string) =>
    front({ changed: (reply) => reply.replace(what, by) })
  const old = () =>
    replaced(/redis_version:[\d.]+/, (is = '') => 'redis_version:6.0.9'.padEnd(is.length, '0'))
  const ahead = () =>
    replaced(/^\*2\r\n\$10\r\n(\d{10})/, (_, s) => `*2\r\n$10\r\n${Number(s) + 3_600}`)

  it.each([
    ['is too old', 'version', old, finding('error', 'needs Redis 6.2')],
    ['is a replica', 'role', replica, finding('error', 'a replica of 127', 'the master')],
    ['evicts keys', 'eviction', evicting, finding('warning', 'allkeys-lru', 'noeviction')],
    ['has another time', 'clock', ahead, finding('warning', '3600 s ahead of', 'NTP')],
    ['is far away', 'latency', far, finding('warning', ' ms', 'same zone')],
  ])('%s', async (_, check, start, found) => {
    const { of, exitCode } = await examine(await start())
    expect(of(check)).toMatchObject(found)
    expect(exitCode).toBe(found.severity === 'error' ? 1 : 0)
  })

  it('has no memory left', async () => {
    const own = await startOwn()
    await own.cli('CONFIG', 'SET', 'maxmemory', '600000')
    const { of } = await examine(own.url)
    expect(of('memory')).toMatchObject(finding('error', 'OOM', 'raise maxmemory'))
    expect(of('decision')?.severity).toBe('error')
  })

  it('could not save, and may refuse writes', async () => {
    const folder = temporaryFolder('doctor')
    const own = await startOwn('--dir', folder.path)
    folder[Symbol.dispose]()
    await own.cli('BGSAVE')
    await until('the save has failed', async () =>
      String(await own.cli('INFO', 'persistence')).includes('rdb_last_bgsave_status:err'),
    )
    expect((await examine(own.url)).of('persistence')).toMatchObject(finding('warning', 'MISCONF'))
  })

  it('has keys of the prefix that never expire, or that are big', async () => {
    await redis.cli('SET', 'odd:{53t}:burst:x', 'v')
    const lasting = finding('warning', 'never expire, such as odd:{53t}:burst:x')
    expect((await examine(redis.url, '--prefix', 'odd')).of('keys')).toMatchObject(lasting)
    await redis.cli('SET', 'big:{53t}:burst:x', 'v'.repeat(5 * 1_024 * 1_024), 'EX', '60')
    expect((await examine(redis.url, '--prefix', 'big')).of('keys')?.seen).toContain('MiB')
  })
})

describe('a proxy that is trusted', () => {
  const ofProxy = async (at: string) => (await examine(redis.url, '--api', `${at}/`)).of('proxy')

  it.each([
    [true, 'error'],
    [1, 'error'],
    ['10.0.0.1', 'ok'],
  ])('%j is %s', async (trust, severity) => {
    const app = express()
    app.set('trust proxy', trust)
    app.use(rateLimit({ limit: 100, window: '1m' }))
    app.get('/', (_request, response) => void response.send('ok'))
    const found = await ofProxy(await serve(app))
    expect(found?.severity).toBe(severity)
    if (severity !== 'error') return
    expect(found?.fix).toContain(`app.set('trust proxy', 1)`)
    expect(found?.fix).toContain('bypassed the proxy, a count such as 1 is expected to fail')
    expect(found?.fix).toContain(`app.set('trust proxy', '10.0.0.0/8')`)
  })

  /** What a limit shows, and whether it allows the request; else the first alone passes. */
  type Answer = (isMadeUp: boolean, left: number) => readonly [field: string, isAllowed?: boolean]
  const oneOfTwo: Answer = (isMadeUp, left) => [
    `"all";r=${left}, "ip";r=${isMadeUp ? 5 : left}`,
    true,
  ]

  it.each<[string, Answer, severity: string]>([
    ['a limit that refills at once', () => ['"burst";r=9', true], 'note'],
    ['a limit of one that believes them', (isMadeUp) => ['"one";r=0', isMadeUp], 'error'],
    ['a limit of one that does not', () => ['"one";r=0'], 'ok'],
    ['one limit of two that believes them', oneOfTwo, 'error'],
  ])('is reported for %s', async (_, answer, severity) => {
    let asked = 0
    const origin = await serve(({ headers }, response) => {
      const [field, isAllowed] = answer(headers['x-forwarded-for'] !== undefined, 20 - asked)
      asked += 1
      response.statusCode = isAllowed || asked === 1 ? 200 : 429
      response.setHeader('RateLimit', field).end()
    })
    expect((await ofProxy(origin))?.severity).toBe(severity)
    expect(asked).toBe(6)
  })

  it('cannot be checked if the API sends no headers or does not answer', async () => {
    expect((await ofProxy(await serve(express())))?.severity).toBe('note')
    expect((await ofProxy('http://127.0.0.1:1'))?.seen).toContain('does not answer')
  })
})
