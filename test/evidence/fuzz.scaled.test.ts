import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLimiter } from '@sluice/core'
import { mergeExposed, mergeRetryAfter, parseHeaders } from '@sluice/headers'
import { policyFileProblems } from '@sluice/policies'
import { redisStore } from '@sluice/redis'
import fc from 'fast-check'
import type { Redis } from 'ioredis'
import { afterAll, expect } from 'vitest'
import { startAdmin } from '../admin/admin-server.ts'
import { operations } from '../admin/operations.ts'
import { runSluice } from '../cli/run-sluice.ts'
import { anyFieldValue, anyTime } from '../headers/arbitraries.ts'
import { patientLimiter } from '../support/patient-limiter.ts'
import { it } from '../support/redis-test.ts'
import { scaled } from '../support/scale.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { readText } from '../support/workspace.ts'
import { note, replayed, times } from './figures.ts'

const folder = temporaryFolder('fuzz')
afterAll(() => folder[Symbol.dispose]())

/** A text that was right, with a piece of it replaced. */
function spoiled(texts: readonly string[]): fc.Arbitrary<string> {
  const piece = fc.record({
    text: fc.constantFrom(...texts),
    place: fc.nat(),
    length: fc.nat({ max: 30 }),
    put: fc.oneof(fc.string({ maxLength: 12 }), fc.constantFrom(...'{}[]",:#&*!|>-\n\0\ud800')),
  })
  return piece.map(({ text, place, length, put }) => {
    const at = place % text.length
    return text.slice(0, at) + put + text.slice(at + length)
  })
}

const fieldNames = [
  ...['RateLimit', 'RateLimit-Policy', 'RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'],
  ...['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset', 'X-Rate-Limit-Reset'],
  ...['X-RateLimit-Reset-Tokens', 'Anthropic-RateLimit-Tokens-Reset'],
  ...['Retry-After', 'Retry-After-Ms'],
] as const

function expectCount(value: number | undefined): void {
  if (value === undefined) return
  expect(Object.is(value, -0)).toBe(false)
  expect(value).toBeGreaterThanOrEqual(0)
  expect(Number.isInteger(value)).toBe(true)
}

const headerFields = fc.asyncProperty(
  fc.dictionary(fc.constantFrom(...fieldNames), anyFieldValue),
  ...[anyTime, anyFieldValue],
  async (source, nowMs, existing) => {
    const { policies, retryAfterMs } = parseHeaders(source, { nowMs })
    for (const { limit, remaining, resetMs, windowMs } of policies) {
      for (const number of [limit, remaining, resetMs, windowMs]) expectCount(number)
    }
    expectCount(retryAfterMs)
    expect(mergeExposed(existing, ['RateLimit'])).toMatch(/ratelimit|\*/i)
    expect(mergeRetryAfter(existing, '30')).toMatch(/^\d{1,7}$/)
  },
)

const examples: readonly unknown[] = JSON.parse(readText('packages/policies/schema.json')).examples
const policyFiles = fc.asyncProperty(
  spoiled(examples.map((example) => JSON.stringify(example, null, 2))),
  async (text) => {
    const problems = policyFileProblems(text)
    expect(problems.length).toBeLessThanOrEqual(100)
    for (const { line, column, message } of problems) {
      expect([line > 0, column > 0, message.length > 0]).toEqual([true, true, true])
    }
  },
)

const lines = [
  '192.0.2.7 - - [21/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 12 "-" "curl"',
  '{"time":1795255201250,"req":{"method":"GET","url":"/a","remoteAddress":"::1"},"responseTime":3}',
  'h2 2026-11-21T10:00:01.2Z app/lb 192.0.2.7:28 10.0.0.1:80 0 0 0 200 200 3 3 "GET http://a/ HTTP/2.0" "c" E T a "R" "e" "a" 0 2026-11-21T10:00:00Z "f" "-"',
  '2026-11-21\t10:00:01\tX\t1\t192.0.2.7\tGET\ta\t/a\t200\t-\tc\t-\t-\tHit\tid\ta\thttps\t1\t1.0\t-',
]

/** Numbers in place of times and durations, some beyond what a clock can show. */
const numbers = fc.oneof(
  fc.constantFrom('9'.repeat(25), 'Infinity', '-1', '8640000000000001', '253402300800', '1e30'),
  fc.double({ min: 0 }).map(String),
)
const mistimed = fc
  .tuple(fc.boolean(), numbers, numbers)
  .map(([isJson, time, duration]) =>
    isJson
      ? (lines[1] ?? '').replace('1795255201250', time).replace('3}', `${duration}}`)
      : `192.0.2.7 "GET /a HTTP/1.1" ${time} ${duration} -`,
  )
const log = fc.array(
  fc
    .oneof(spoiled(lines), mistimed, fc.string(), fc.constantFrom(...lines), fc.json())
    .map((line) => Buffer.from(line)),
  { minLength: 1, maxLength: 12 },
)
const bytes = fc.uint8Array({ maxLength: 60 }).map((array) => [Buffer.from(array)])
const formats = [
  ...['auto', 'common', 'combined', 'vhost-combined', 'pino-http', 'caddy', 'traefik', 'envoy'],
  ...['alb', 'cloudfront', '$remote_addr "$request" $msec $request_time $http_x_forwarded_for'],
]

const policies = join(folder.path, 'sluice.yaml')
writeFileSync(policies, 'policies: [{ name: one, limit: 1, window: 1h }]\n')
const logs = fc.asyncProperty(
  fc.constantFrom(...formats),
  fc.oneof(log, bytes),
  async (format, written) => {
    const stdin = Buffer.concat(written.flatMap((line) => [line, Buffer.from('\n')]))
    const words = ['-p', policies, '--format', format, '--trust-proxy', '1', '--json']
    const { exitCode, stdout, stderr } = await runSluice(['simulate', '-', ...words], { stdin })
    if (exitCode === 2) {
      expect(stderr).toMatch(
        /^error: (no|none of the formats|no line of the log|the log has|- cannot be read: )/,
      )
      expect(stderr).not.toContain('\n    at ')
      return
    }
    expect([exitCode, stderr]).toEqual([0, ''])
    const { log: read, totals } = JSON.parse(stdout)
    expect(read.requests + read.unreadable.lines).toBeLessThanOrEqual(read.lines)
    expect(totals.allowed + totals.denied).toBe(read.requests)
  },
)

/** Each answer of the admin API is also held against openapi.json. */
async function adminBodies() {
  const { call, policies } = await startAdmin()
  const acts = Object.values(operations).filter(({ body }) => body)
  const changed = fc.record({
    act: fc.constantFrom(...acts),
    field: fc.nat(),
    value: fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.constantFrom('user ada', '1h', -1, 1e99)),
  })
  const body = fc.oneof(
    changed.map(({ act, field, value }) => {
      const names = [...Object.keys(act.body ?? {}), 'dryRun']
      const name = names[field % names.length] ?? ''
      return { act, text: JSON.stringify({ ...act.body, [name]: value }) }
    }),
    fc
      .constantFrom(...acts)
      .chain((act) =>
        fc.oneof(spoiled([JSON.stringify(act.body)]), fc.json()).map((text) => ({ act, text })),
      ),
  )
  return fc.asyncProperty(body, async ({ act, text }) => {
    const headers: Record<string, string> = act.ifMatch
      ? { 'if-match': `"${policies.version}"` }
      : {}
    const { status } = await call('POST', act.path, { text, headers })
    expect(status, text).toBeLessThan(500)
  })
}

/** Whatever identities contain, no two are counted as one. */
function keys(client: Redis) {
  const odd = fc.string({ unit: fc.constantFrom(...'ab:|-{}*\0%\ud800\udc01é'.split('')) })
  const text = fc.oneof(odd, fc.string()).filter((each) => each !== '')
  const identities = fc.uniqueArray(text, { minLength: 2, maxLength: 30 })
  let opened = 0
  return fc.asyncProperty(identities, fc.boolean(), async (given, digest) => {
    opened += 1
    const prefix = `fuzz${opened}`
    const store = redisStore(client, { prefix, digest, heartbeatMs: 0 })
    const limiter = patientLimiter({ store, name: 'p', limit: 5, window: '1h' })
    for (const identity of given) await limiter.consume(identity)
    const found = await client.keys(`${prefix}:*`)
    expect(found).toHaveLength(given.length)
    await client.unlink(found)
  })
}

const part = fc.oneof(
  ...[fc.integer(), fc.maxSafeInteger(), fc.double(), fc.integer().map(String)],
  ...[fc.string(), fc.constantFrom(null, undefined, '', Number.NaN, -1, 'NOSCRIPT', {})],
)
const replies = fc.asyncProperty(
  fc.array(fc.oneof(part, fc.array(fc.oneof(part, fc.array(part, { maxLength: 8 })))), {
    minLength: 1,
    maxLength: 6,
  }),
  async (given) => {
    let sent = 0
    const send = async () => {
      sent += 1
      return given[sent % given.length]
    }
    const store = redisStore({ send }, { heartbeatMs: 0 })
    const limiter = createLimiter({
      ...{ store, name: 'p', limit: 5, window: '1m', failureMode: 'closed' },
      observers: { onStoreError: () => undefined },
    })
    for (let asked = 0; asked < 3; asked += 1) {
      const { outcomes, retryAfterMs } = await limiter.consume('k')
      expect(retryAfterMs).toBeGreaterThanOrEqual(0)
      for (const { limit = 5, remaining = 0 } of outcomes) {
        expect(remaining).toBeGreaterThanOrEqual(0)
        expect(remaining).toBeLessThanOrEqual(limit)
      }
    }
    await limiter.close()
    await store.close?.()
  },
)

type Property = fc.IAsyncPropertyWithHooks<never> | fc.IRawProperty<unknown, true>

it.for<{ what: string; runs: number; open: (client: Redis) => Property | Promise<Property> }>([
  { what: 'header fields', runs: 2_000, open: () => headerFields },
  { what: 'policy files', runs: 200, open: () => policyFiles },
  { what: 'logs', runs: 100, open: () => logs },
  { what: 'admin bodies', runs: 60, open: adminBodies },
  { what: 'keys', runs: 60, open: keys },
  { what: 'replies of Redis', runs: 200, open: () => replies },
])(
  'a parser of $what handles any input',
  { timeout: 60_000 * times },
  async (row, { client, task }) => {
    const inputs = Math.ceil(row.runs * scaled(1, 5) * times)
    await fc.assert(await row.open(client), { numRuns: inputs, ...replayed })
    note(task, { inputs })
  },
)
