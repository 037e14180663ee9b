import { readFileSync } from 'node:fs'
import type { SimulationReport } from '@sluice/cli'
import { describe, expect, it } from 'vitest'
import { reported } from './run-sluice.ts'
import { testFiles } from './test-files.ts'

const { at, write } = testFiles('real-logs')
const none = 'policies: [{ name: none, limit: 0, window: 1h }]\n'
const policies = write('sluice.yaml', none)
const byAgent = write('agents.yaml', `key: agent\n${none}`)

const envoyText =
  '[$time_iso8601] "$request" $status $flags $received $sent $request_ms $upstream "$remote_addr" "$http_user_agent" "$request_id" "$host" "$upstream_host"'

const curl = { agents: ['curl/8.5.0'] }

/** What is read of a log: its format, its requests, and the user agents that it tells. */
function read(format: string, requests: string, own: Own, lines: readonly string[]) {
  return { format, requests, ...own, lines }
}

type Own = { unreadable?: number; agents?: readonly string[]; args?: readonly string[] }

/** Lines as the products write them, with all that stands beside what is read. */
const logs: Readonly<Record<string, ReturnType<typeof read>>> = {
  'Apache, common': read(
    'common',
    '2000-10-10T20:55:36Z 127.0.0.1 GET /apache_pb.gif',
    { unreadable: 1 },
    [
      '127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326',
      // A connection that timed out before its request.
      '127.0.0.1 - - [10/Oct/2000:13:55:39 -0700] "-" 408 -',
    ],
  ),
  'nginx, combined': read(
    'combined',
    '2015-05-17T08:05:32Z 93.180.71.3 GET /downloads/product_1, 2015-05-17T08:05:33Z 2001:db8::/64 PROPFIND /',
    { unreadable: 1, agents: ['Debian APT-HTTP/1.3 (0.8.16~exp12ubuntu10.21)'] },
    [
      '93.180.71.3 - - [17/May/2015:08:05:32 +0000] "GET /downloads/product_1 HTTP/1.1" 304 0 "-" "Debian APT-HTTP/1.3 (0.8.16~exp12ubuntu10.21)"',
      '2001:db8::7 - - [17/May/2015:08:05:33 +0000] "PROPFIND / HTTP/1.1" 405 157 "-" "-"',
      '93.180.71.3 - - [17/May/2015:08:05:34 +0000] "" 400 0 "-" "-"',
    ],
  ),
  'Apache, vhost_combined': read(
    'vhost-combined',
    '2026-11-21T10:00:00Z 203.0.113.9 GET /',
    { agents: ['Mozilla/5.0 "quoted"'] },
    [
      'www.example.com:80 203.0.113.9 - - [21/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 11173 "https://example.com/" "Mozilla/5.0 \\"quoted\\""',
    ],
  ),
  'pino-http': read('pino-http', '2026-11-21T10:00:01Z 192.0.2.7 GET /a', curl, [
    '{"level":30,"time":1795255201250,"pid":17,"hostname":"web-1","msg":"Server listening at http://0.0.0.0:3000"}',
    '{"level":30,"time":1795255201250,"pid":17,"hostname":"web-1","req":{"id":1,"method":"GET","url":"/a?x=1","query":{"x":"1"},"params":{},"headers":{"host":"localhost:3000","user-agent":"curl/8.5.0","accept":"*/*"},"remoteAddress":"::ffff:192.0.2.7","remotePort":51234},"res":{"statusCode":200,"headers":{"content-type":"application/json; charset=utf-8"}},"responseTime":250,"msg":"request completed"}',
  ]),
  Fastify: read('pino-http', '2026-11-21T10:00:01.250Z 192.0.2.7 GET /a', {}, [
    '{"level":30,"time":1795255201250,"pid":17,"hostname":"web-1","reqId":"req-1","req":{"method":"GET","url":"/a","host":"localhost:3000","remoteAddress":"192.0.2.7","remotePort":51234},"msg":"incoming request"}',
    '{"level":30,"time":1795255201255,"pid":17,"hostname":"web-1","reqId":"req-1","res":{"statusCode":200},"responseTime":4.8,"msg":"request completed"}',
  ]),
  Caddy: read('caddy', '2026-11-21T10:00:01Z 192.0.2.7 GET /a', curl, [
    '{"level":"info","ts":1795255201.2501024,"logger":"http.log.access.log0","msg":"handled request","request":{"remote_ip":"192.0.2.7","remote_port":"41342","client_ip":"192.0.2.7","proto":"HTTP/2.0","method":"GET","host":"localhost","uri":"/a?b","headers":{"User-Agent":["curl/8.5.0"],"Accept":["*/*"]},"tls":{"resumed":false,"version":772,"cipher_suite":4865,"proto":"h2","server_name":"example.com"}},"bytes_read":0,"user_id":"","duration":0.250029675,"size":10900,"status":200,"resp_headers":{"Server":["Caddy"],"Content-Encoding":["gzip"]}}',
  ]),
  'Traefik, JSON': read('traefik', '2026-11-21T10:00:00.250Z 192.0.2.7 GET /', curl, [
    '{"ClientAddr":"192.0.2.7:56994","ClientHost":"192.0.2.7","ClientPort":"56994","ClientUsername":"-","DownstreamContentSize":355,"DownstreamStatus":200,"Duration":1003000,"OriginContentSize":355,"OriginDuration":862000,"OriginStatus":200,"Overhead":141000,"RequestAddr":"whoami.localhost","RequestContentSize":0,"RequestCount":1,"RequestHost":"whoami.localhost","RequestMethod":"GET","RequestPath":"/","RequestPort":"-","RequestProtocol":"HTTP/1.1","RequestScheme":"http","RetryAttempts":0,"RouterName":"whoami@docker","ServiceAddr":"172.18.0.3:80","ServiceName":"whoami@docker","ServiceURL":"http://172.18.0.3:80","StartLocal":"2026-11-21T12:00:00.250123456+02:00","StartUTC":"2026-11-21T10:00:00.250123456Z","entryPointName":"web","level":"info","msg":"","request_User-Agent":"curl/8.5.0","time":"2026-11-21T10:00:00Z"}',
  ]),
  'Traefik, common': read(
    'traefik-common',
    '2026-11-21T10:00:00Z 192.0.2.7 GET /, 2026-11-21T10:00:01Z 192.0.2.7 GET /none',
    {},
    [
      '192.0.2.7 - - [21/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 355 "-" "-" 1 "whoami@docker" "http://172.18.0.3:80" 1ms',
      '192.0.2.7 - - [21/Nov/2026:10:00:01 +0000] "GET /none HTTP/1.1" 404 19 "-" "-" 2 "-" "-" 0ms',
    ],
  ),
  'Envoy, the JSON of Istio': read('envoy', '2026-11-21T10:00:00.250Z 192.0.2.7 GET /a', curl, [
    '{"authority":"example.com","bytes_received":0,"bytes_sent":5,"connection_termination_details":null,"downstream_local_address":"10.0.0.1:8080","downstream_remote_address":"192.0.2.7:4711","duration":3,"method":"GET","path":"/a","protocol":"HTTP/1.1","request_id":"0b2f","requested_server_name":null,"response_code":200,"response_code_details":"via_upstream","response_flags":"-","route_name":"default","start_time":"2026-11-21T10:00:00.250Z","upstream_cluster":"outbound|80||web","upstream_host":"10.0.0.9:80","upstream_service_time":"2","user_agent":"curl/8.5.0","x_forwarded_for":null}',
  ]),
  'Envoy, its default text': read(
    'nginx',
    '2026-11-21T10:00:00.250Z 192.0.2.7 GET /a',
    { ...curl, args: ['--format', envoyText, '--time', 'start'] },
    [
      '[2026-11-21T10:00:00.250Z] "GET /a HTTP/1.1" 200 - 0 5 3 2 "192.0.2.7" "curl/8.5.0" "cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "locations" "tcp://10.0.2.1:80"',
    ],
  ),
  ALB: read(
    'alb',
    '2018-07-02T22:22:48.364Z 192.0.2.7 GET /, 2018-07-02T22:22:49.364Z 192.0.2.7 GET /',
    { unreadable: 1, ...curl },
    [
      'h2 2018-07-02T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 192.0.2.7:2817 10.0.1.252:48160 0.000 0.066 0.000 200 200 5 257 "GET https://10.0.2.105:773/ HTTP/2.0" "curl/8.5.0" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/my-targets/73e2d6bc24d8a067 "Root=1-58337327-72bd00b0343d75b906739c42" "-" "-" 1 2018-07-02T22:22:48.364000Z "redirect" "https://example.com:80/" "-" "10.0.0.66:9000" "200" "-" "-" TID_1234abcd5678ef90',
      // A target that does not answer, and a request that is none.
      'https 2018-07-02T22:23:01.186641Z app/my-loadbalancer/50dc6c495c0c9188 192.0.2.7:2818 - -1 -1 -1 502 - 34 366 "GET https://www.example.com:443/ HTTP/1.1" "-" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/my-targets/73e2d6bc24d8a067 "Root=1-58337364-23a8c76965a2ef7629b185e3" "-" "-" 0 2018-07-02T22:22:49.364000Z "forward" "-" "LambdaInvalidResponse" "-" "-" "-" "-"',
      'http 2018-07-02T22:23:02.186641Z app/my-loadbalancer/50dc6c495c0c9188 192.0.2.7:2819 - -1 -1 -1 400 - 0 272 "- http://my-loadbalancer.us-east-2.elb.amazonaws.com:80- -" "-" - - - "-" "-" "-" - 2018-07-02T22:22:50.364000Z "-" "-" "-" "-" "-" "-" "-"',
    ],
  ),
  CloudFront: read(
    'cloudfront',
    '2019-12-04T21:02:30.999Z 192.0.2.100 GET /index.html',
    { agents: ['Mozilla/5.0 (Windows NT 10.0; Win64; x64)'] },
    [
      '#Version: 1.0',
      '#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes time-taken x-forwarded-for ssl-protocol ssl-cipher x-edge-response-result-type cs-protocol-version fle-status fle-encrypted-fields c-port time-to-first-byte x-edge-detailed-result-type sc-content-type sc-content-len sc-range-start sc-range-end',
      '2019-12-04\t21:02:31\tLAX1\t392\t192.0.2.100\tGET\td111111abcdef8.cloudfront.net\t/index.html\t200\t-\tMozilla/5.0%20(Windows%20NT%2010.0;%20Win64;%20x64)\t-\t-\tHit\tSOX4xwn4XV6Q4rgb7XiVGOHms_BGlTAC4KyHmureZmBNrjGdRLiNIQ==\td111111abcdef8.cloudfront.net\thttps\t23\t0.001\t-\tTLSv1.2\tECDHE-RSA-AES128-GCM-SHA256\tHit\tHTTP/2.0\t-\t-\t11040\t0.001\tHit\ttext/html\t78\t-\t-',
    ],
  ),
}

describe('a log as a product writes it is read', () => {
  it.each(Object.entries(logs))('%s', async (_, real) => {
    const { format, requests, lines, args = [], unreadable = 0, agents = [] } = real
    const file = write('access.log', [...lines, 'garbage'].join('\r\n'))
    const decisions = at('decisions.jsonl')
    const simulate = ['simulate', file, ...args, '--decisions', decisions, '--force', '-p']
    const { log } = await reported<SimulationReport>([...simulate, policies])
    const found = readFileSync(decisions, 'utf8').trim().split('\n')
    expect({
      ...{ format: log.format, requests: found.map(shown).join(', ') },
      unreadable: log.unreadable.lines,
    }).toEqual({ format, requests, unreadable: unreadable + 1 })

    const keyed = [...simulate, byAgent, '--key', 'agent=header:user-agent']
    const { deniedClients } = await reported<SimulationReport>(keyed)
    const clients = deniedClients.map(({ client }) => client.replace('@header/user-agent/', ''))
    expect(clients.filter((client) => client !== '(no key)')).toEqual(agents)
  })
})

function shown(line: string): string {
  const { timeMs, client, method, path } = JSON.parse(line)
  const time = new Date(timeMs).toISOString().replace('.000Z', 'Z')
  return `${time} ${client.replace('@ip/', '')} ${method} ${path}`
}
