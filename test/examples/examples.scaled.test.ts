import { once } from 'node:events'
import { symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { freePortPair } from '../support/free-port.ts'
import { repeated } from '../support/in-turn.ts'
import { findOrInstall } from '../support/programs.ts'
import { startRedis } from '../support/redis-server.ts'
import { isProof } from '../support/scale.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { readText } from '../support/workspace.ts'
import { startInTest as start } from './start-example.ts'

const sixOf = (admitted: number) => [...Array(5).fill(admitted), 429]

const statuses = (url: string, count: number, init?: RequestInit) =>
  repeated(count, async () => (await fetch(url, init)).status)

describe('examples/quickstart', () => {
  it('refuses the sixth request in Express and in Fastify, in memory', async () => {
    const port = await freePortPair()
    const text = await start('quickstart', { PORT: String(port) }).printed(/Try:/)
    expect(text).toContain('in the memory of this process')
    expect(text).toContain(`curl -i http://localhost:${port}/`)
    for (const url of [`http://localhost:${port}/`, `http://localhost:${port + 1}/`]) {
      expect(await statuses(url, 6)).toEqual(sixOf(200))
    }
  })

  it.runIf(isProof)('counts in Redis with REDIS_URL, and never prints the password', async () => {
    await using redis = await startRedis({ args: ['--requirepass', 'hunter2'] })
    const port = await freePortPair()
    const url = `redis://:hunter2@127.0.0.1:${redis.port}`
    const text = await start('quickstart', { PORT: String(port), REDIS_URL: url }).printed(/Try:/)
    expect(text).toContain(`in Redis at redis://127.0.0.1:${redis.port}`)
    expect(text).not.toContain('hunter2')
    expect(await statuses(`http://localhost:${port}/`, 6)).toEqual(sixOf(200))
    expect(await statuses(`http://localhost:${port + 1}/`, 6)).toEqual(sixOf(200))
  })

  it.runIf(isProof)('says which port is in use, and what to do', async () => {
    const blocker = createServer().listen(0)
    await once(blocker, 'listening')
    const address = blocker.address()
    const port = typeof address === 'object' ? address?.port : undefined
    const { code, errors } = await start('quickstart', { PORT: String(port) }).ended()
    blocker.close()
    expect(code).toBe(1)
    expect(errors).toContain(`Port ${port} is in use. Choose two free ones in a row with PORT`)
  })

  it.runIf(isProof)('reports an invalid PORT, and an unreachable Redis', async () => {
    const noPort = await start('quickstart', { PORT: 'http' }).ended()
    expect(noPort).toMatchObject({ code: 1, errors: expect.stringContaining("but is 'http'") })
    const url = `redis://127.0.0.1:${await freePortPair()}`
    const PORT = String(await freePortPair())
    const noRedis = await start('quickstart', { PORT, REDIS_URL: url }).ended()
    const errors = expect.stringContaining('no Redis answers at')
    expect(noRedis).toMatchObject({ code: 1, errors })
  })
})

describe.runIf(isProof).each(['express', 'fastify', 'nest'])('examples/%s', (name) => {
  it.each(['memory', 'Redis'])(
    'limits logins apart from everything, and searches by their cost, in %s',
    async (where) => {
      await using redis = where === 'Redis' ? await startRedis() : undefined
      const port = await freePortPair()
      const env = redis ? { PORT: String(port), REDIS_URL: redis.url } : { PORT: String(port) }
      await start(name, env).printed(/listening on/)
      const url = `http://localhost:${port}`
      expect(await statuses(`${url}/login`, 6, { method: 'POST' })).toEqual(sixOf(401))
      const made: number[] = []
      for (let i = 0; i < 50; i += 1) {
        const headers = { 'x-api-key': `made up ${i}`, 'content-type': 'application/json' }
        const body = JSON.stringify({ name: `name ${i}` })
        made.push(...(await statuses(`${url}/login`, 1, { method: 'POST', headers, body })))
      }
      expect(made.filter((status) => status === 401)).toHaveLength(20 - 5)
      const search = { headers: { 'x-api-key': 'a' } }
      const answer = await fetch(`${url}/api/search`, search)
      expect(await answer.json()).toEqual({ left: [5, 595] })
      expect(answer.headers.get('ratelimit')).toMatch(/"burst";r=5;t=1, "sustained";r=595;t=60$/)
      const other = await fetch(`${url}/api/search`, { headers: { 'x-api-key': 'b' } })
      expect(await other.json()).toEqual({ left: [5, 595] })
      const unknown = await fetch(`${url}/nowhere`)
      expect(unknown.status).toBe(404)
      expect(unknown.headers.get('ratelimit')).toContain('"default"')
    },
  )
})

it('examples/tiers limits anonymous, authenticated and premium users by tier, and addresses first', async () => {
  const port = await freePortPair()
  await start('tiers', { PORT: String(port) }).printed(/listening on/)
  const url = `http://localhost:${port}/`
  const as = (token: string): RequestInit => ({ headers: { authorization: `Bearer ${token}` } })

  const first = await fetch(url)
  expect(await first.json()).toEqual({ hello: 'stranger' })
  expect(first.headers.get('ratelimit-policy')).toBe('"address";q=100;w=60, "client";q=3;w=60')
  expect(await statuses(url, 3)).toEqual([200, 200, 429])
  expect(await statuses(url, 11, as('token-of-ann'))).toEqual([...Array(10).fill(200), 429])
  expect(await statuses(url, 51, as('token-of-bob'))).toEqual([...Array(50).fill(200), 429])
  // 66 of the 100 of this address are gone. Wrong tokens take the rest, also in the shape of CORS preflights.
  const asked = { origin: 'https://a.example', 'access-control-request-method': 'GET' }
  const guess = { method: 'OPTIONS', headers: { ...asked, authorization: 'Bearer guess' } }
  const guesses = Array.from({ length: 200 }, async () => (await fetch(url, guess)).status)
  expect((await Promise.all(guesses)).filter((status) => status !== 429)).toEqual(
    Array(34).fill(401),
  )
  expect(await statuses(url, 1, as('token-of-ann'))).toEqual([429])
})

describe('examples/admin', () => {
  it('prints the current version, and applies a file edited while it runs', async () => {
    using folder = temporaryFolder('policies')
    const file = join(folder.path, 'sluice.yaml')
    const text = readText('examples/admin/sluice.yaml')
    writeFileSync(file, text)
    const port = await freePortPair()
    const example = start('admin', { PORT: String(port), POLICIES: file, TRAFFIC: 'off' })
    const first = /^version (\S+) is now active$/m.exec(await example.printed(/^Open http:/m))?.[1]
    expect(await (await fetch(`http://localhost:${port}/limits`)).text()).toMatch(
      /^<!doctype html>/,
    )
    const login = { method: 'POST', headers: { 'x-user': 'ada' } }
    const url = `http://localhost:${port}/login`
    expect(await statuses(url, 6, login)).toEqual(sixOf(401))

    writeFileSync(file, text.replace('limit: 5,', 'limit: -5,'))
    expect(await example.printed(/still applies:\n.+\n/)).toMatch(/^sluice.yaml:\d+:\d+: .*limit$/m)
    writeFileSync(file, text.replace('limit: 5,', 'limit: 6,'))
    await example.printed(new RegExp(`^version (?!${first}).+ is now active$`, 'm'))
    expect(await statuses(url, 2, login)).toEqual([401, 429])
  })

  it('with ROLE=fleet says how to go on without Prometheus, and what its clients were answered', async () => {
    using bin = temporaryFolder('fleet')
    symlinkSync(findOrInstall('redis'), join(bin.path, 'redis-server'))
    const port = await freePortPair()
    const env = { PATH: bin.path, ROLE: 'fleet', SECONDS: '3', FREEZE_SECONDS: '1' }
    const example = start('admin', { PORT: String(port), ...env })
    const text = await example.printed(/^answers: .*\n/m)
    expect(text).toContain('Redis is frozen.\nRedis is back.\n')
    expect(text).toMatch(/^Prometheus +is not installed/m)
    const url = /http:\S+\/metrics/.exec(text)?.[0]
    expect(text).toMatch(/^answers: \d+ × 200, (\d+ × 202, )?\d+ × 401, \d+ × 429/m)
    expect(await example.ended()).toMatchObject({ code: 0 })
    await expect(fetch(url ?? '')).rejects.toThrow()
  }, 60_000)
})

describe('examples/budgets', () => {
  it('settles by the usage of the vendor, else by what was spent, and ends', async () => {
    const example = start('budgets', {})
    expect(await example.ended()).toMatchObject({ code: 0, errors: '' })
    const text = await example.printed(/./)
    for (const [model, input, output] of [
      ['gpt-small', 1, 4],
      ['claude-small', 2, 8],
    ] as const) {
      const [, table = ''] = text.split(`left (${model})\n`)
      const rows = table.split('\n').slice(0, 5)
      // The last chunks before the cut may be lost.
      const cut = Number(/^cut +200 +(\d+) /.exec(rows[2] ?? '')?.[1])
      expect(cut).toBeLessThanOrEqual(20)
      // The prompt has 10 tokens, and the answer 80, of which the vendor reports 90.
      let [tokens, money] = [1_000, 20_000]
      const left = (prompt: number, answer: number) => {
        tokens -= prompt + answer
        money -= prompt * input + answer * output
        return `${tokens} tokens, ${money} micro-dollars`
      }
      expect(rows.map((row) => row.replaceAll(/ {2,}/g, ' | '))).toEqual([
        `an answer | 200 | 80 tokens | ${left(10, 90)}`,
        `without usage | 200 | 80 tokens | ${left(10, 80)}`,
        `cut | 200 | ${cut} tokens | ${left(10, cut)}`,
        `an error | 502 | 0 tokens | ${left(0, 0)}`,
        `too large | 429 | 0 tokens | ${left(0, 0)}`,
      ])
    }
  })

  it('keeps listening with PORT, and rejects an invalid body', async () => {
    const port = await freePortPair()
    await start('budgets', { PORT: String(port) }).printed(/listening on/)
    for (const path of [`:${port}/v1/chat/completions`, `:${port + 1}/v1/messages`]) {
      const post = (body: string): RequestInit => ({
        ...{ method: 'POST', body },
        headers: { 'content-type': 'application/json', 'x-user': 'ada' },
      })
      const ask = '{ "model": "gpt-small", "max_tokens": 2, "messages": [] }'
      const answer = await fetch(`http://localhost${path}`, post(ask))
      expect(await answer.text()).toMatch(/^(event: .+\n)?data: /)
      expect(await statuses(`http://localhost${path}`, 1, post('{}'))).toEqual([400])
    }
  })
})
