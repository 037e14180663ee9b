import type { Role } from '@sluice/admin'
import { describe, expect, it } from 'vitest'
import { ask } from '../adapters/ask.ts'
import { frameworks, startAdmin } from './admin-server.ts'
import { callNow, operations } from './operations.ts'

const roles: readonly Role[] = ['read', 'keys', 'policies']

describe.each(frameworks)('the admin API in %s', (framework) => {
  it('answers each operation as openapi.json says, to those who may ask, and 403 to all others', async () => {
    const who: { may: readonly Role[] } = { may: [] }
    const started = await startAdmin({
      framework,
      admin: { authorize: () => ({ actor: 'ada', may: who.may }) },
    })
    await started.visit('ada')
    for (const [name, operation] of Object.entries(operations)) {
      for (const role of roles) {
        who.may = [role]
        const { status, body } = await callNow(started, operation)
        const wanted = role === operation.role ? 200 : 403
        expect(status, `${name} as ${role}: ${JSON.stringify(body)}`).toBe(wanted)
      }
    }
  })

  it('answers nobody without authorize', async () => {
    const started = await startAdmin({ framework, admin: { authorize: () => false } })
    for (const operation of Object.values(operations)) {
      expect((await callNow(started, operation)).status).toBe(403)
    }
    expect((await ask(started.port, '/limits/')).status).toBe(403)
    expect((await ask(started.port, '/limits/nothing')).status).toBe(403)
  })

  it('redirects to the slash, and serves the page and its files under it', async () => {
    const { port } = await startAdmin({ framework })
    const bare = await ask(port, '/limits?tab=keys')
    expect([bare.status, bare.field('location')]).toEqual([308, './limits/?tab=keys'])
    const page = await ask(port, '/limits/')
    expect([page.status, page.field('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(page.field('content-security-policy')).toContain("default-src 'none'")
    const again = { headers: { 'if-none-match': page.field('etag') ?? '' } }
    expect((await ask(port, '/limits/', again)).status).toBe(304)
    const packed = await ask(port, '/limits/page.js', { headers: { 'accept-encoding': 'gzip' } })
    expect([packed.status, packed.field('content-encoding')]).toEqual([200, 'gzip'])
    const plain = await ask(port, '/limits/page.js')
    expect(plain.field('content-encoding')).toBeUndefined()
    expect(plain.body).toContain('preact: The MIT License')
    expect((await ask(port, '/limits/page.css')).status).toBe(200)
    expect((await ask(port, '/limits/', { method: 'HEAD' })).status).toBe(200)
  })

  it('refuses what has no place: other methods, other paths, other bodies', async () => {
    const { call, port } = await startAdmin({ framework })
    const change = { method: 'PUT', headers: { 'x-sluice-admin': '1' } }
    const put = await ask(port, '/limits/api/v1/policies', change)
    expect([put.status, put.field('allow')]).toEqual([405, 'GET'])
    expect((await ask(port, '/limits/api/v1/nothing')).status).toBe(404)
    expect((await call('POST', 'keys/lookup', { text: '{"key":' })).status).toBe(400)
    const plain = { headers: { 'content-type': 'text/plain' }, text: '{}' }
    expect((await call('POST', 'keys/lookup', plain)).status).toBe(415)
    const huge = { text: JSON.stringify({ key: 'x'.repeat(70_000) }) }
    expect((await call('POST', 'keys/lookup', huge)).status).toBe(413)
  })
})
