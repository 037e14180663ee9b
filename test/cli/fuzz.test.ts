import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { runSluice } from './run-sluice.ts'

const folder = temporaryFolder('fuzz')
afterAll(() => folder[Symbol.dispose]())

const policies = join(folder.path, 'sluice.yaml')
writeFileSync(policies, 'policies: [{ name: one, limit: 1, window: 1h }]\n')

/** Lines that can be read, to be spoiled. */
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
  .tuple(numbers, numbers)
  .map(([time, duration]) => `192.0.2.7 "GET /a HTTP/1.1" ${time} ${duration} -`)
const mistimedJson = fc
  .tuple(numbers, numbers)
  .map(([time, duration]) =>
    (lines[1] ?? '').replace('1795255201250', time).replace('3}', `${duration}}`),
  )

const spoiled = fc
  .tuple(fc.constantFrom(...lines), fc.nat(), fc.nat({ max: 30 }), fc.string({ maxLength: 12 }))
  .map(([line, place, length, text]) => {
    const at = place % line.length
    return line.slice(0, at) + text + line.slice(at + length)
  })
const log = fc.array(
  fc
    .oneof(spoiled, mistimed, mistimedJson, fc.string(), fc.constantFrom(...lines), fc.json())
    .map((line) => Buffer.from(line)),
  { minLength: 1, maxLength: 12 },
)
const bytes = fc.uint8Array({ maxLength: 60 }).map((array) => [Buffer.from(array)])

const formats = [
  ...['auto', 'common', 'combined', 'vhost-combined', 'pino-http', 'caddy', 'traefik', 'envoy'],
  ...['alb', 'cloudfront', '$remote_addr "$request" $msec $request_time $http_x_forwarded_for'],
]

describe('lines that nobody expects', () => {
  it.each(formats)(
    'are counted, and end in no error of ours: %s',
    { timeout: 60_000 },
    async (format) => {
      await fc.assert(
        fc.asyncProperty(fc.oneof(log, bytes), async (written) => {
          const stdin = Buffer.concat(written.flatMap((line) => [line, Buffer.from('\n')]))
          const { exitCode, stdout, stderr } = await runSluice(
            ['simulate', '-', '-p', policies, '--format', format, '--trust-proxy', '1', '--json'],
            { stdin },
          )
          if (exitCode === 2) {
            expect(stderr).toMatch(
              /^error: (no|none of the formats|no line of the log|the log has)/,
            )
            expect(stderr).not.toContain('\n    at ')
            return
          }
          expect([exitCode, stderr]).toEqual([0, ''])
          const { log: read, totals } = JSON.parse(stdout)
          expect(read.requests + read.unreadable.lines).toBeLessThanOrEqual(read.lines)
          expect(totals.allowed + totals.denied).toBe(read.requests)
        }),
        { numRuns: 25 },
      )
    },
  )
})
