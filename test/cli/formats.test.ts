import { gzipSync } from 'node:zlib'
import type { SimulationReport } from '@sluice/cli'
import { describe, expect, it } from 'vitest'
import { reported, runSluice } from './run-sluice.ts'
import { testFiles } from './test-files.ts'

const { write: fileOf } = testFiles('formats')
const policies = fileOf('sluice.yaml', 'policies: [{ name: one, limit: 1, window: 1h }]\n')
const none = 'policies: [{ name: one, limit: 0, window: 1h }]\n'
const started = Date.parse('2026-11-21T10:00:00.250Z')

const combined = '192.0.2.7 - - [21/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 12 "-" "curl"'

describe('a log', () => {
  it('is read by any log_format of nginx', async () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of nginx
    const duration = '${request_time}s'
    const format = `$remote_addr [$time_iso8601] "$request_method $request_uri" $status ${duration} "$http_x_tenant"`
    const line = '192.0.2.7 [2026-11-21T10:00:01+00:00] "POST /a" 201 0.750s "\\x22acme\\x22"'
    const file = fileOf('nginx.log', `${line}\n`)
    const keyed = fileOf('tenant.yaml', `key: tenant\n${none}`)
    const args = ['-p', keyed, '--format', format, '--key', 'tenant=header:x-tenant']
    const report = await simulated([file], args)
    expect(report.log).toMatchObject({ format: 'nginx', fromMs: started })
    expect(report.deniedClients[0]?.client).toBe('@header/x-tenant/"acme"')
  })

  it('is read by a map of the fields of JSON lines', async () => {
    const line = JSON.stringify({
      ...{ '@timestamp': '2026-11-21T10:00:01.250Z', client: { ip: '192.0.2.7' }, took: 1 },
      ...{ http: { method: 'GET' }, url: '/a', user: { id: 42 } },
    })
    const fields = 'time=@timestamp,ip=client.ip,method=http.method,path=url,duration=took:s'
    const keyed = fileOf('user.yaml', `key: user\n${none}`)
    const read = ['--format', 'json', '--fields', fields, '--key', 'user=field:user.id']
    const report = await simulated([fileOf('own.log', line)], ['-p', keyed, ...read])
    expect(report.log).toMatchObject({ format: 'json', fromMs: started })
    expect(report.deniedClients[0]?.client).toBe('@user/42')
  })

  it('may be compressed, on standard input, or in several files merged by time', async () => {
    const line = (address: string, second: number) =>
      `${address} - - [21/Nov/2026:10:00:0${second} +0000] "GET / HTTP/1.1" 200 1 "-" "-"\n`
    const odd = fileOf('odd.log.gz', gzipSync(line('192.0.2.7', 1) + line('192.0.2.8', 3)))
    const even = line('192.0.2.8', 2) + line('192.0.2.7', 4)
    const words = ['simulate', odd, '-', '-p', policies]
    const report = await reported<SimulationReport>(words, { stdin: even })
    expect(report.log).toMatchObject({ requests: 4, late: 0 })
    const first = report.deniedClients.map(({ client, firstDenialMs }) => [client, firstDenialMs])
    expect(Object.fromEntries(first)).toEqual({
      '@ip/192.0.2.7': Date.parse('2026-11-21T10:00:04Z'),
      '@ip/192.0.2.8': Date.parse('2026-11-21T10:00:03Z'),
    })
  })

  it('counts the client behind proxies that are declared, by number or network', async () => {
    const line =
      '10.0.0.1 - - [21/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "-" "198.51.100.1, 192.0.2.7,, 10.0.0.2"\n'
    const file = fileOf('forwarded.log', line.repeat(2))
    const format =
      '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" "$http_x_forwarded_for"'
    for (const trusted of ['2', '10.0.0.0/8', 'uniquelocal']) {
      const report = await simulated([file], ['--format', format, '--trust-proxy', trusted])
      expect(report.deniedClients[0]?.client).toBe('@ip/192.0.2.7')
    }
    const untrusted = await simulated([file], ['--format', format])
    expect(untrusted.deniedClients[0]?.client).toBe('@ip/10.0.0.1')
  })

  it('is sorted within a window; later lines are reported', async () => {
    const line = (time: string) =>
      `192.0.2.7 - - [21/Nov/2026:${time} +0000] "GET / HTTP/1.1" 200 1 "-" "-"\n`
    const lines = Array.from({ length: 20_000 }, () => line('10:10:00')).join('')
    const text = line('10:00:05') + line('10:00:01') + lines + line('10:00:02')
    const report = await simulated([fileOf('mixed.log', text)])
    expect(report.log).toMatchObject({ requests: 20_003, late: 1 })
    expect(report.log.fromMs).toBe(Date.parse('2026-11-21T10:00:01Z'))
    expect(report.notes.join('\n')).toContain('1 requests were more out of order')
  })

  const [msec, known] = ['$msec $request_time', '1795255201.250 1.000']

  it.each([
    ['a time that ends no loop', msec, `${'9'.repeat(25)} 0.1`, known],
    ['an exponent', msec, '1e25 0.1', known],
    ['a duration without an end', msec, '1795255201.250 Infinity', known],
    ['a time after 9999', msec, `3${'0'.repeat(20)} 0.1`, known],
    ['a duration of more than 30 days', msec, '1795255201.250 3000000', known],
    ['31 Feb', '[$time_local]', '[31/Feb/2026:10:00:00 +0000]', '[28/Feb/2026:10:00:00 +0000]'],
    ['hour 25', '[$time_local]', '[21/Nov/2026:25:61:61 +0000]', '[21/Nov/2026:23:59:60 +0000]'],
    ['day 0', '[$time_local]', '[00/Nov/2026:10:00:00 +0000]', '[29/Feb/2028:10:00:00 +0000]'],
    ['31 February of ISO', '$time_iso8601', '2026-02-31T10:00:00Z', '2026-02-28T10:00:00Z'],
  ])('takes %s for an unreadable line, and not for the end', async (_, times, wrong, right) => {
    const lines = [right, wrong, right].map((time) => `192.0.2.7 "GET /a HTTP/1.1" ${time}\n`)
    const args = ['--format', `$remote_addr "$request" ${times}`]
    const report = await simulated([fileOf('times.log', lines.join(''))], args)
    expect(report.log).toMatchObject({ requests: 2, unreadable: { lines: 1 } })
    expect(report.totals).toMatchObject({ allowed: 1, denied: 1 })
  })

  it('fails with --strict when a line cannot be read, and shows it', async () => {
    const file = fileOf('strict.log', `${combined}\nGET / nonsense\n`)
    const { exitCode, stderr } = await runSluice(['simulate', file, '-p', policies, '--strict'])
    expect(exitCode).toBe(1)
    expect(stderr).toContain(`1 of 2 lines cannot be read, as ${file}:2: `)
    expect(stderr).toContain('GET / nonsense')
  })
})

describe('bad input', () => {
  const log = fileOf('good.log', `${combined}\n`)
  const simulate = ['simulate', log, '-p', policies]
  const wrong = fileOf('wrong.yaml', 'policies: [{ name: one, limit: -1, window: 1h }]\n')

  it.each([
    [['simulate', 'none.log', '-p', policies], 'none.log cannot be read: ENOENT'],
    [['simulate', fileOf('empty.log', ''), '-p', policies], 'the log has no requests'],
    [['simulate', fileOf('odd.log', 'x\ny\n'), '-p', policies], 'none of the formats'],
    [[...simulate, '--format', 'iis'], '--format iis is unknown: use auto'],
    [[...simulate, '--format', '$status$request'], 'nothing between $status and $request'],
    [[...simulate, '--format', '$status $request'], 'no variable for a time'],
    [[...simulate, '--format', 'json'], '--format json needs --fields with time, ip'],
    [[...simulate, '--fields', 'when=ts'], `--fields has 'when=ts'`],
    [[...simulate, '--trust-proxy', 'nginx'], '--trust-proxy nginx must be a number'],
    [[...simulate, '--order-window', '5'], '--order-window'],
    [[...simulate, '--key', 'tenant'], '--key tenant must be a name of the policy file'],
    [['simulate', log, '-p', 'none.yaml'], 'none.yaml cannot be read'],
    [['simulate', log, '-p', wrong], 'wrong.yaml:1:32: policies[0].limit must be'],
    [['simulate', log], `required option '-p, --policies <file>'`],
  ])('%j is refused with the fix', async (args, message) => {
    const { exitCode, stdout, stderr } = await runSluice(args)
    expect([exitCode, stdout]).toEqual([2, ''])
    expect(stderr).toContain(message)
    expect(stderr).not.toContain('    at ')
  })

  it('reports a truncated compressed file', async () => {
    const packed = gzipSync(`${combined}\n`.repeat(1_000))
    const file = fileOf('cut.log.gz', packed.subarray(0, packed.length - 20))
    const { exitCode, stderr } = await runSluice(['simulate', file, '-p', policies])
    expect(exitCode).toBe(2)
    expect(stderr).toContain('cut.log.gz cannot be read: unexpected end of file')
  })
})

function simulated(logs: readonly string[], args: readonly string[] = []) {
  const withPolicies = args.includes('-p') ? args : ['-p', policies, ...args]
  return reported<SimulationReport>(['simulate', ...logs, ...withPolicies])
}
