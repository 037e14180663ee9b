import crypto from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer, type OutgoingHttpHeaders } from 'node:http2'
import { createAdmin, type Granted } from '@sluice/admin'
import { memoryStore } from '@sluice/core'
import { mount, rateLimit } from '@sluice/express'
import { mount as koaMount } from '@sluice/koa'
import express from 'express'
import Koa from 'koa'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { ask } from '../adapters/ask.ts'
import { sendPipelined } from '../adapters/send-raw.ts'
import { pageRequest } from '../metrics/scrape.ts'
import { readText } from '../support/workspace.ts'
import { everything, frameworks, startAdmin } from './admin-server.ts'
import { serve } from './serve.ts'

const body = { key: 'user ada', reason: 'a test' }

describe('authorize', () => {
  it('refuses everybody if it is missing, and says what to do', async () => {
    const answer = await createAdmin({})(requestOf({}))
    expect(answer?.status).toBe(403)
    expect(String(answer?.body)).toContain('authorize')
  })

  it.each([
    ...[undefined, null, false, '', true, 'ada', { actor: 'ada' }],
    { actor: '', may: ['read'] },
    { actor: '\u3164', may: ['read'] },
    { actor: 7, may: ['read'] },
    { actor: 'ada', may: 'read' },
    { actor: 'ada', may: ['write', 'constructor'] },
    Object.create({ actor: 'ada', may: ['read'] }),
  ])('treats a result without roles as a refusal: %j', async (answer) => {
    vi.spyOn(process, 'emitWarning').mockReturnValue()
    const { call } = await startAdmin({ admin: { authorize: () => answer as Granted } })
    expect((await call('GET', 'session')).status).toBe(403)
  })

  it('awaits the result, and keeps line breaks out of names', async () => {
    const actor = `ada\r\nSet-Cookie: a=b\u2028${'x'.repeat(300)}`
    const authorize = async () => ({ actor, may: ['read'] }) as const
    const { call } = await startAdmin({ admin: { authorize } })
    const { status, body } = await call('GET', 'session')
    expect(status).toBe(200)
    expect(body.actor).toMatch(/^ada\\u\{d\}\\u\{a\}Set-Cookie: a=b\\u\{2028\}x+$/)
    expect(body.actor.length).toBe(200)
  })

  it("passes the function's errors to the framework", async () => {
    const authorize = () => {
      throw new Error('no database')
    }
    vi.spyOn(console, 'error').mockReturnValue()
    const { port } = await startAdmin({ admin: { authorize } })
    expect((await ask(port, '/limits/api/v1/session')).status).toBe(500)
  })

  it.each([0, 'everybody', {}, true])('is a function or localhost, and not %j', (authorize) => {
    expect(() => createAdmin({ authorize: authorize as 'localhost' })).toThrow(/authorize/)
  })
})

describe.each(frameworks)("authorize: 'localhost' in $name", (framework) => {
  it('admits this machine, and nobody through a proxy or with another Host', async () => {
    const { port } = await startAdmin({ framework, admin: { authorize: 'localhost' } })
    const statusWith = async (headers: Record<string, string>) =>
      (await ask(port, '/limits/api/v1/session', { headers })).status
    const own = ['localhost', `127.0.0.1:${port}`, '[::1]:3000', 'LOCALHOST:80']
    for (const host of own) expect(await statusWith({ host })).toBe(200)
    const foreign = ['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example', '10.0.0.1']
    for (const host of foreign) expect(await statusWith({ host })).not.toBe(200)
    for (const name of ['x-forwarded-for', 'forwarded', 'via', 'x-real-ip', 'x-forwarded-host']) {
      expect(await statusWith({ host: 'localhost', [name]: '127.0.0.1' })).toBe(403)
    }
  })
})

describe('the limit of guesses in docs/admin.md', () => {
  it.each(['GET', 'POST', 'OPTIONS'])('stops 200 guesses by %s', async (method) => {
    const code = /^```ts\n(import \{ createHash.*?)^```/ms.exec(readText('docs/admin.md'))?.[1]
    const app = express()
    const names = {
      ...{ app, mount, rateLimit, createAdmin, store: memoryStore() },
      ...{ createHash: crypto.createHash, timingSafeEqual: crypto.timingSafeEqual },
      ...{ policies: undefined, metrics: undefined, process: { env: { OPS_TOKEN: 'a secret' } } },
    }
    new Function(...Object.keys(names), String(code).replace(/^import .*$/m, ''))(
      ...Object.values(names),
    )
    const port = Number(new URL(await serve(app)).port)
    const asked = { origin: 'https://a.example', 'access-control-request-method': 'GET' }
    const headers = { ...asked, authorization: 'Bearer guess' }
    const statuses = await sendPipelined(port, Array(200).fill('/limits/'), { method, headers })
    expect(statuses.filter((status) => status !== 429)).toEqual(Array(30).fill(401))
    expect(statuses).toHaveLength(200)
  })
})

it.each([
  ['127.0.0.1', 200],
  ['127.8.8.8', 200],
  ['::1', 200],
  ['::ffff:127.0.0.1', 200],
  ['10.0.0.1', 403],
  ['::ffff:10.0.0.1', 403],
  ['127.0.0.1.evil', 403],
  [undefined, 403],
])("authorize: 'localhost' checks the peer address: %s", async (peer, status) => {
  const handler = createAdmin({ authorize: 'localhost' })
  const request = { ...requestOf({ host: 'localhost' }), ip: '127.0.0.1', peer }
  expect((await handler(request))?.status).toBe(status)
})

describe('a request from another site', () => {
  it.each([
    [{ 'sec-fetch-site': 'cross-site' }, 403],
    [{ 'sec-fetch-site': 'same-site' }, 403],
    [{ origin: 'https://evil.example' }, 403],
    [{ origin: 'null' }, 403],
    [{ origin: 'https://evil.example', 'sec-fetch-site': 'same-origin' }, 403],
    [{ origin: 'https://api.example', host: 'api.example:8443' }, 403],
    [{ origin: 'https://api.example:8443', host: 'api.example:8443' }, 200],
    [{ origin: 'https://api.example', host: 'api.example', 'sec-fetch-site': 'same-origin' }, 200],
    [{ 'x-sluice-admin': '' }, 403],
    [{}, 200],
  ])('%j is answered %i', async (headers, status) => {
    const { call, look, visit } = await startAdmin()
    await visit('ada')
    expect((await call('POST', 'keys/reset', { body, headers })).status).toBe(status)
    expect((await look('user ada')).body.found).toBe(status !== 200)
  })

  it('gets no CORS permission', async () => {
    const { port } = await startAdmin()
    const headers = { origin: 'https://evil.example' }
    const preflight = await ask(port, '/limits/api/v1/keys/reset', { method: 'OPTIONS', headers })
    expect(preflight.field('access-control-allow-origin')).toBeUndefined()
    expect(preflight.status).toBe(403)
  })
})

it.each([
  [{}, 200],
  [{ origin: 'null' }, 403],
  [{ origin: 'file://' }, 403],
  [{ origin: 'data:' }, 403],
  [{ origin: 'https://evil.example' }, 403],
])('without a Host, a request has no origin: %j is answered %i', async (headers, status) => {
  const handler = createAdmin({ authorize: () => everything })
  expect((await handler(requestOf(headers)))?.status).toBe(status)
  expect((await createAdmin({ authorize: 'localhost' })(requestOf(headers)))?.status).toBe(403)
})

it('over HTTP/2 the authority is the Host', async () => {
  const app = new Koa()
  app.use(koaMount(createAdmin({ authorize: 'localhost' }), '/limits'))
  const server = createServer(app.callback()).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const port = Number(Reflect.get(Object(server.address()), 'port'))
  const session = (headers: Readonly<Record<string, string>>) =>
    askHttp2(port, { ':path': '/limits/api/v1/session', ...headers })
  expect(await session({})).toBe(200)
  expect(await session({ origin: `http://127.0.0.1:${port}` })).toBe(200)
  expect(await session({ origin: 'http://evil.example' })).toBe(403)
  expect(await session({ origin: 'null' })).toBe(403)
  expect(await session({ ':authority': 'evil.example' })).toBe(403)
})

/** A request for the session that came past every framework. */
function requestOf(headers: Readonly<Record<string, string>>) {
  const path = '/api/v1/session'
  const header = (name: string) => headers[name]
  return pageRequest({ path, originalPath: path, peer: '127.0.0.1', header })
}

async function askHttp2(port: number, headers: OutgoingHttpHeaders): Promise<number> {
  const session = connect(`http://127.0.0.1:${port}`)
  try {
    const stream = session.request(headers)
    const [answer] = await once(stream, 'response')
    stream.close()
    return Number(answer[':status'])
  } finally {
    session.close()
  }
}
