import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { ask } from '../adapters/ask.ts'
import { sendRaw } from '../adapters/send-raw.ts'
import { frameworks, startAdmin } from './admin-server.ts'
import { operations } from './operations.ts'

const reason = 'a test'

describe('attacks on the admin API', () => {
  it('are refused if they leave the mount path', async () => {
    const { port } = await startAdmin()
    const paths = [
      ...['../package.json', '..%2fpackage.json', '%2e%2e/%2e%2e/etc/passwd'],
      ...['page.js/../../openapi.json', 'api/v1/../v1/audit', 'api/v1//audit'],
      ...['api/v1/queues/..%2f..%2fetc/dead', 'api/v1/queues/%ff/dead'],
      ...['api/v1/queues/__proto__/dead', '\\..\\package.json'],
    ]
    for (const path of paths) {
      const { status, body } = await ask(port, `/limits/${path}`)
      expect([400, 404], `${path}: ${body}`).toContain(status)
      expect(body).not.toContain('"name": "sluice')
    }
    await sendRaw(port, 'GET', ['/limits/\u0000', '/limits/%00', '/limits/api/v1/%0d%0aX: y'])
    expect((await ask(port, '/limits/api/v1/session')).status).toBe(200)
  })

  it.each([
    '{"key":"user ada","reason":"x","__proto__":{"dryRun":true}}',
    '{"key":{"__proto__":{"user":"ada"}},"reason":"x"}',
    '{"key":{"constructor":"ada"},"reason":"x"}',
    '{"key":"user ada","reason":"x","toString":1}',
    '{"key":{"digest":"q83vEjRWeJCrze8SNFZ4kA","user":"ada"},"reason":"x"}',
    ...['[]', '"user ada"', 'null', '7', '{"key":7,"reason":"x"}', '{"key":"user ada"}'],
    '{"key":"user ada","reason":""}',
    '{"key":"user ada","reason":"one\\nADMIN two"}',
    '{"key":"user ada","reason":"one\\u2028two"}',
    '{"key":"user ada","reason":" \\u00a0\\u3000"}',
    '{"key":"user ada","reason":"\\u3164\\u2800\\ufe0f"}',
    '{"key":"user ada","reason":"ticket\\u200b 4711"}',
    '{"key":"user ada","reason":"ticket \\ud800"}',
    '{"key":"user ada","reason":"x","policies":["constructor"]}',
    '{"key":"nobody ada","reason":"x"}',
    '{"key":"toString ada","reason":"x"}',
    '{"key":"user","reason":"x"}',
    `${'['.repeat(10_000)}${']'.repeat(10_000)}`,
  ])('are refused in a body: %s', async (sent) => {
    const { call, look, visit, policies } = await startAdmin()
    await visit('ada')
    const { status, body } = await call('POST', 'keys/reset', { text: sent })
    expect(status, JSON.stringify(body)).toBe(400)
    expect(body.detail).not.toMatch(/[\r\n\u2028]/)
    expect((await look('user ada')).body).toMatchObject({
      found: true,
      policies: [{ used: 1 }, {}],
    })
    expect(policies.file.overrides).toHaveLength(1)
    expect(Reflect.get({}, 'dryRun')).toBeUndefined()
  })

  it('are refused in a query: unknown, duplicate or malformed', async () => {
    const { call } = await startAdmin()
    const paths = [
      ...['top?most=1000', 'top?most=-1', 'top?most=1e3', 'top?by=constructor', 'top?__proto__=1'],
      ...['top?by=asked&by=asked', 'session?x=1', 'policies/diff', 'policies/diff?from=../../etc'],
      ...['audit?most=99999999999999999999', 'queues/jobs/dead?offset=-1'],
    ]
    for (const path of paths) expect((await call('GET', path)).status, path).toBe(400)
  })

  it('find no identity or secret in a response without reveal', async () => {
    const { act, look, visit, policies, port } = await startAdmin()
    await visit('sk_live_secret', 'hidden-tenant')
    const keys = ['user sk_live_secret', 'tenant hidden-tenant, user sk_live_secret']
    for (const key of keys) await act('reset', { key })
    const answers = [JSON.stringify((await look({ user: 'sk_live_secret' })).body)]
    for (const { method, path } of Object.values(operations)) {
      const asked = path.replace('from=now', `from=${policies.version}`)
      if (method === 'GET') answers.push((await ask(port, `/limits/api/v1/${asked}`)).body)
    }
    for (const answer of answers) expect(answer).not.toMatch(/sk_live_secret|hidden-tenant/)
  })

  it('reach the identity that they name, whatever delimiters it has', async () => {
    const started = await startAdmin()
    const delimiters = fc.string({
      unit: fc.constantFrom(...', :;"\'\\/{}[]@|*?#%+=&ip user\u0000é😀'),
      ...{ minLength: 1, maxLength: 12 },
    })
    await fc.assert(
      fc.asyncProperty(delimiters, delimiters, async (user, other) => {
        fc.pre(user !== other)
        const { limiter, key, policy, limit } =
          started.policies.countsOf({ key: { user } })[0] ?? {}
        if (!limiter || !policy || key === undefined || limit === undefined) throw new Error()
        await limiter.chargeChecks([{ policy, key, limit, cost: 1 }])
        const found = async (key: unknown) => (await started.act('reset', { key })).body.found
        expect(await found({ user: other })).toBe(false)
        expect(await found(`user ${JSON.stringify(user)}`)).toBe(true)
        expect(await found({ user })).toBe(false)
      }),
      { numRuns: 30 },
    )
  })
})

describe.each(frameworks)('a body that does not come, in $name', (framework) => {
  const head = [
    ...['POST /limits/api/v1/keys/reset HTTP/1.1', 'Host: h', 'X-Sluice-Admin: 1'],
    ...['Content-Type: application/json', 'Connection: close'],
  ]

  /** Sends the head of a request, and what follows it. @returns all that is answered */
  function send(port: number, field: string, body: string | Buffer): Promise<string> {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => undefined)
    socket.write([...head, field, '', ''].join('\r\n'))
    socket.write(body)
    return text(socket)
  }

  it('blocks nobody else, and has no effect', async () => {
    const { port, call } = await startAdmin({ framework })
    // It is refused by its announced length, before the rest of it comes.
    expect(await send(port, 'Content-Length: 100000000', '{"key":')).toContain('HTTP/1.1 413')
    expect((await call('GET', 'session')).status).toBe(200)
  })

  it('is aborted after ten seconds, however slowly it arrives', async () => {
    const { port, look, visit } = await startAdmin({ framework })
    await visit('ada')
    const realSetTimeout = globalThis.setTimeout
    const clock = vi.spyOn(globalThis, 'setTimeout')
    onTestFinished(() => clock.mockRestore())
    // Ten seconds pass in a fifth of one.
    clock.mockImplementation(((handler: () => void, ms: number, ...args: []) =>
      realSetTimeout(handler, ms === 10_000 ? 200 : ms, ...args)) as typeof setTimeout)
    const socket = connect(port, '127.0.0.1')
    const body = JSON.stringify({ key: 'user ada', reason })
    socket.write([...head, `Content-Length: ${body.length + 5_000}`, '', body].join('\r\n'))
    const drip = setInterval(() => socket.write(' '), 10)
    onTestFinished(() => clearInterval(drip))
    socket.on('error', () => undefined)
    expect(await text(socket)).toContain('HTTP/1.1 408')
    expect((await look('user ada')).body.found).toBe(true)
  })

  it('is refused if it is too long without a length, or compressed', async () => {
    const { port, call, look, visit } = await startAdmin({ framework })
    await visit('ada')
    const body = JSON.stringify({ key: 'user ada', reason, more: 'x'.repeat(70_000) })
    const chunks = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
    expect(await send(port, 'Transfer-Encoding: chunked', chunks)).toContain('HTTP/1.1 413')
    const encoded = { body: { key: 'user ada', reason }, headers: { 'content-encoding': 'gzip' } }
    expect((await call('POST', 'keys/reset', encoded)).status).toBe(415)
    expect((await look('user ada')).body.found).toBe(true)
  })

  it('is read only as UTF-8', async () => {
    const { port } = await startAdmin({ framework })
    const sent = Buffer.from(JSON.stringify({ key: 'user adé', reason }), 'latin1')
    const utf16 = Buffer.from(JSON.stringify({ key: 'user ada', reason }), 'utf16le')
    for (const body of [sent, utf16]) {
      expect(await send(port, `Content-Length: ${body.length}`, body)).toContain('HTTP/1.1 400')
    }
  })
})
